import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createThrottle } from '../../../src/events/webhooks/throttle.ts';
import { createManualClock } from '../../support/clock.ts';

const limits = { periodMs: 50, startsPerPeriod: 5, quietRequestsMax: 8 };

/** A throttle, and how many of a thousand starts it allows at once while the store has so many requests. */
function open() {
  const clock = createManualClock();
  let requests = 0;
  const throttle = createThrottle({ clock, requestsInFlight: () => requests, limits });
  const starts = (inFlight: number) => {
    requests = inFlight;
    let count = 0;
    for (; count < 1_000 && throttle.waitMs() === 0; count += 1) throttle.start();
    return count;
  };
  return { clock, throttle, starts };
}

test('while the store has few requests, nothing is throttled', () => {
  assert.equal(open().starts(limits.quietRequestsMax), 1_000);
});

test('while the store has more, a few starts are allowed in each period', () => {
  const { starts, clock, throttle } = open();
  assert.equal(starts(limits.quietRequestsMax + 1), limits.startsPerPeriod);
  clock.advance(20);
  assert.equal(starts(limits.quietRequestsMax + 1), 0);
  assert.equal(throttle.waitMs(), 30);
  clock.advance(30);
  assert.equal(starts(limits.quietRequestsMax + 1), limits.startsPerPeriod);
});

test('the throttle ends after a whole period without waiting requests', () => {
  const { starts, clock } = open();
  assert.equal(starts(limits.quietRequestsMax + 1), limits.startsPerPeriod);
  assert.equal(starts(0), 0);
  clock.advance(limits.periodMs);
  assert.equal(starts(0), limits.startsPerPeriod, 'the previous period was busy');
  clock.advance(limits.periodMs);
  assert.equal(starts(0), 1_000);
});
