import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createClockPart } from '../../src/health/clock-part.ts';
import { createManualClock } from '../support/clock.ts';

const noonMs = Date.UTC(2026, 10, 22, 12);
const minuteMs = 60_000;

/** The part on a clock that stands at noon. */
function atNoon(newestMs?: number) {
  const clock = createManualClock(noonMs);
  return { clock, part: createClockPart(clock, newestMs) };
}

test('a clock that drifts slowly is right', () => {
  for (const driftMs of [-minuteMs, 0, minuteMs]) {
    const { clock, part } = atNoon(noonMs - 1);
    for (let time = 0; time < 100; time += 1) {
      assert.equal(part.findFault(), undefined);
      clock.advance(10 * minuteMs);
      clock.setWall(clock.nowMs() + driftMs);
    }
  }
});

test('a clock that was never set is wrong until it is set', () => {
  const clock = createManualClock(0);
  const part = createClockPart(clock, undefined);
  clock.advance(24 * 60 * minuteMs);
  assert.equal(part.findFault(), 'the clock has not been set: it says 1970-01-02T00:00:00Z');
  clock.setWall(noonMs);
  assert.equal(part.findFault(), undefined, 'that it was set now is no doubt');
});

test('a clock over five minutes before the newest filing is a fault', () => {
  assert.equal(atNoon(noonMs + 5 * minuteMs).part.findFault(), undefined);
  const { clock, part } = atNoon(noonMs + 5 * minuteMs + 1_000);
  const fault = 'the clock says 2026-11-22T12:00:00Z, 301 s before the newest filing';
  assert.equal(part.findFault(), fault);
  clock.setWall(noonMs + 60 * minuteMs);
  assert.equal(part.findFault(), undefined, 'right as soon as it is set');
});

test('a clock that is set by more than five minutes is a fault until it is set back', () => {
  for (const [setByMs, words] of [
    [301_000, 'the clock was set forward by 301 s, to 2026-11-22T12:05:01Z'],
    [-3_600_000, 'the clock was set back by 3600 s, to 2026-11-22T11:00:00Z'],
  ] as const) {
    const { clock, part } = atNoon();
    assert.equal(part.findFault(), undefined);
    clock.setWall(noonMs + setByMs);
    assert.equal(part.findFault(), words);
    clock.advance(10 * minuteMs);
    assert.notEqual(part.findFault(), undefined);
    clock.setWall(clock.nowMs() - setByMs);
    assert.equal(part.findFault(), undefined);
  }
});

test('five minutes, the tolerance of calls, are no fault', () => {
  const { clock, part } = atNoon();
  assert.equal(part.findFault(), undefined);
  clock.setWall(noonMs + 300_000);
  assert.equal(part.findFault(), undefined);
});

test('a fault of the clock ends after eleven minutes, since it may have been wrong before', () => {
  const late = atNoon(noonMs + 24 * 60 * minuteMs);
  const set = atNoon();
  assert.equal(set.part.findFault(), undefined);
  set.clock.setWall(noonMs + 24 * 60 * minuteMs);
  for (const { clock, part } of [late, set]) {
    clock.advance(11 * minuteMs - 1);
    assert.notEqual(part.findFault(), undefined);
    clock.advance(1);
    assert.equal(part.findFault(), undefined);
    clock.advance(minuteMs);
    assert.equal(part.findFault(), undefined, 'and it is what the next one is measured by');
  }
});
