import assert from 'node:assert/strict';
import { test } from 'node:test';
import { clockError, clocksApartText, findClockFault } from '../../src/domain/filing-clock.ts';

const nowS = Date.UTC(2026, 10, 22, 12) / 1_000;
const dayS = 86_400;
const fault = (over: { newestS?: number; datedS?: number; setByS?: number } = {}) =>
  findClockFault({ nowS, newestS: nowS, datedS: undefined, setByS: 0, ...over });

test('a clock that advances is right, also within one second', () => {
  assert.equal(findClockFault({ nowS, newestS: undefined, datedS: undefined, setByS: 0 }), undefined);
  for (const newestS of [nowS, nowS - 1, nowS - 366 * dayS]) assert.equal(fault({ newestS }), undefined);
});

test('a clock more than five seconds behind the newest record is wrong', () => {
  assert.equal(fault({ newestS: nowS + 5 }), undefined);
  assert.deepEqual(fault({ newestS: nowS + 6 }), { kind: 'BEHIND', byS: 6 });
  assert.deepEqual(fault({ newestS: nowS + 90 * dayS }), { kind: 'BEHIND', byS: 90 * dayS });
});

test('a clock that was set by more than a day is wrong, be it forward or back', () => {
  for (const setByS of [dayS, -dayS]) assert.equal(fault({ setByS }), undefined);
  for (const setByS of [dayS + 1, -dayS - 1])
    assert.deepEqual(fault({ setByS }), { kind: 'SET', byS: setByS });
});

test('a clock that is more than 366 days ahead of the newest filing is wrong', () => {
  const datedS = nowS - 366 * dayS;
  assert.equal(fault({ datedS }), undefined);
  assert.deepEqual(fault({ datedS: datedS - 1 }), { kind: 'AHEAD', byS: 366 * dayS + 1 });
  assert.deepEqual(fault({ newestS: nowS - 366 * dayS - 1 }), { kind: 'AHEAD', byS: 366 * dayS + 1 });
});

test('the error says how wrong the clock is, what to do, and to retry within a minute', () => {
  const { reason, message, hints } = clockError({ kind: 'BEHIND', byS: 12 });
  assert.deepEqual([reason, hints], ['UNAVAILABLE', { retryAfterS: 12 }]);
  assert.match(message, /the clock is 12 s behind the newest record\..*nothing was stored/i);
  assert.match(message, /artseal clock accept$/);
  const far = clockError({ kind: 'BEHIND', byS: 10 * dayS });
  assert.equal(far.hints.retryAfterS, 60);
  assert.match(far.message, /864000 s \(10 days\)/);
  assert.match(clockError({ kind: 'SET', byS: -2 * dayS }).message, /was set back by 172800 s \(2 days\)/);
  assert.equal(clockError({ kind: 'AHEAD', byS: 400 * dayS }).hints.retryAfterS, 60);
});

test('clocks that differ by more than two seconds are too far apart', () => {
  for (const aheadMs of [0, 2_000, -2_000]) assert.equal(clocksApartText(aheadMs), undefined);
  assert.match(
    clocksApartText(2_600) ?? '',
    /^the clock of PostgreSQL is 3 s ahead of that of this machine: /,
  );
  assert.match(
    clocksApartText(-2_600) ?? '',
    /is 3 s behind that of this machine: .* more than 5 s behind that of another rejects/,
  );
});
