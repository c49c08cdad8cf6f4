import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createThrottle } from '../../../src/events/webhooks/throttle.ts';
import { createManualClock } from '../../support/clock.ts';

const limits = { periodMs: 50, startsPerPeriod: 5, quietRequestsMax: 8 };

/** A pace, and how many of a thousand requests may be begun at once while so many units are at the store. */
function start() {
  const clock = createManualClock();
  let units = 0;
  const pace = createThrottle({ clock, requestsInFlight: () => units, limits });
  const begun = (inFlight: number) => {
    units = inFlight;
    let count = 0;
    for (; count < 1_000 && pace.waitMs() === 0; count += 1) pace.start();
    return count;
  };
  return { clock, pace, begun };
}

test('as long as few units are at the store, all requests are begun', () => {
  assert.equal(start().begun(limits.quietRequestsMax), 1_000);
});

test('where more are, a few are begun in each time', () => {
  const { begun, clock, pace } = start();
  assert.equal(begun(limits.quietRequestsMax + 1), limits.startsPerPeriod);
  clock.advance(20);
  assert.equal(begun(limits.quietRequestsMax + 1), 0);
  assert.equal(pace.waitMs(), 30);
  clock.advance(30);
  assert.equal(begun(limits.quietRequestsMax + 1), limits.startsPerPeriod);
});

test('a store that is empty for a moment is not quiet: one that is so for a time is', () => {
  const { begun, clock } = start();
  assert.equal(begun(limits.quietRequestsMax + 1), limits.startsPerPeriod);
  assert.equal(begun(0), 0);
  clock.advance(limits.periodMs);
  assert.equal(begun(0), limits.startsPerPeriod, 'the time before was busy');
  clock.advance(limits.periodMs);
  assert.equal(begun(0), 1_000);
});
