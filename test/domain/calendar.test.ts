import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createCalendar, yearOf } from '../../src/domain/calendar.ts';

const instant = (iso: string) => Date.parse(iso);
const dayS = 86_400;

const timestamps: readonly (readonly [zone: string, at: string, timestamp: string])[] = [
  ['UTC', '2026-11-21T01:15:00Z', '2026-11-21T01:15:00+00:00'],
  ['UTC', '2026-11-21T01:15:00.999Z', '2026-11-21T01:15:00+00:00'],
  ['Asia/Shanghai', '2026-11-21T01:15:00Z', '2026-11-21T09:15:00+08:00'],
  ['America/New_York', '2026-07-01T12:00:00Z', '2026-07-01T08:00:00-04:00'],
  ['America/New_York', '2026-12-01T12:00:00Z', '2026-12-01T07:00:00-05:00'],
  ['Europe/London', '2026-12-01T12:00:00Z', '2026-12-01T12:00:00+00:00'],
  ['Europe/London', '2026-07-01T12:00:00Z', '2026-07-01T13:00:00+01:00'],
  ['Asia/Kathmandu', '2026-01-01T00:00:00Z', '2026-01-01T05:45:00+05:45'],
  ['Pacific/Kiritimati', '2026-12-31T10:00:00Z', '2027-01-01T00:00:00+14:00'],
  ['Pacific/Pago_Pago', '2027-01-01T10:59:59Z', '2026-12-31T23:59:59-11:00'],
];

for (const [zone, at, expected] of timestamps) {
  test(`${at} is ${expected} in ${zone}`, () => {
    const calendar = createCalendar(zone);
    assert.equal(calendar.timestamp(instant(at)), expected);
    assert.equal(calendar.date(instant(at)), expected.slice(0, 10));
    assert.equal(yearOf(expected), Number(expected.slice(0, 4)));
  });
}

test('the repeated hour at the end of summer time has another offset', () => {
  const calendar = createCalendar('Europe/Berlin');
  assert.equal(calendar.timestamp(instant('2026-10-25T00:30:00Z')), '2026-10-25T02:30:00+02:00');
  assert.equal(calendar.timestamp(instant('2026-10-25T01:30:00Z')), '2026-10-25T02:30:00+01:00');
});

test('a clock may go back', () => {
  const calendar = createCalendar('UTC');
  for (const at of ['2026-12-31T23:59:59Z', '2027-01-01T00:00:00Z', '2026-12-31T23:59:59Z']) {
    assert.equal(calendar.timestamp(instant(at)), at.replace('Z', '+00:00'));
    assert.equal(calendar.month(instant(at)).name, at.slice(0, 7));
  }
});

/** The month of an instant in a zone, its end and its length. */
const months: readonly (readonly [
  because: string,
  zone: string,
  at: string,
  endsAt: string,
  lengthS: number,
])[] = [
  ['thirty days', 'UTC', '2026-11-21T00:00:00Z', '2026-12-01T00:00:00Z', 30 * dayS],
  ['a leap year', 'UTC', '2028-02-29T23:59:59Z', '2028-03-01T00:00:00Z', 29 * dayS],
  ['the zone is ahead', 'Asia/Shanghai', '2026-11-30T16:00:00Z', '2026-12-31T16:00:00Z', 31 * dayS],
  ['summer begins', 'America/New_York', '2026-03-15T12:00:00Z', '2026-04-01T04:00:00Z', 31 * dayS - 3_600],
  ['summer ends', 'America/New_York', '2026-11-15T12:00:00Z', '2026-12-01T05:00:00Z', 30 * dayS + 3_600],
  [
    'no first midnight',
    'America/Asuncion',
    '2017-10-15T12:00:00Z',
    '2017-11-01T03:00:00Z',
    31 * dayS - 3_600,
  ],
  ['no midnight at its end', 'America/Asuncion', '2017-09-15T12:00:00Z', '2017-10-01T04:00:00Z', 30 * dayS],
  ['a day was skipped', 'Pacific/Apia', '2011-12-10T12:00:00Z', '2011-12-31T10:00:00Z', 30 * dayS],
];

for (const [because, zone, at, endsAt, lengthS] of months) {
  test(`the month of ${at} in ${zone} ends at ${endsAt}: ${because}`, () => {
    const calendar = createCalendar(zone);
    const name = calendar.timestamp(instant(at)).slice(0, 7);
    const endsAtMs = instant(endsAt);
    const month = calendar.month(instant(at));
    assert.equal(month.name, name);
    assert.equal(month.endsAtMs, endsAtMs);
    assert.equal(month.lengthS, lengthS);
    assert.equal(calendar.month(endsAtMs - 1).name, name);
    assert.equal(calendar.month(endsAtMs - lengthS * 1_000).name, name);
    assert.notEqual(calendar.month(endsAtMs - lengthS * 1_000 - 1).name, name);
    assert.notEqual(calendar.month(endsAtMs).name, name);
  });
}

test('the months of a zone have no gaps and do not overlap', () => {
  for (const zone of ['UTC', 'America/New_York', 'Asia/Kathmandu', 'America/Santiago', 'Pacific/Apia']) {
    const calendar = createCalendar(zone);
    let month = calendar.month(instant('2010-01-15T00:00:00Z'));
    for (let count = 0; count < 240; count += 1) {
      const next = calendar.month(month.endsAtMs);
      assert.equal(next.endsAtMs - next.lengthS * 1_000, month.endsAtMs, `${zone} ${next.name}`);
      assert.ok(next.name > month.name);
      month = next;
    }
    assert.equal(month.name, '2030-01');
  }
});

test('an unknown time zone is rejected', () => {
  for (const zone of ['', 'Mars/Olympus', 'Asia/', 'UTC ']) {
    assert.throws(() => createCalendar(zone), RangeError);
  }
});
