import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPace } from '../../src/webhooks/pace.ts';
import { createManualClock } from '../support/clock.ts';

const limits = { unitsQuietMax: 8, begunPerPace: 5, paceMs: 50 };

/** A pace, and how many of a thousand requests may be begun at once. */
function start() {
  const clock = createManualClock();
  let units = 0;
  const pace = createPace({ clock, unitsInFlight: () => units, limits });
  return {
    ...{ clock, pace },
    has: (inFlight: number) => {
      units = inFlight;
    },
    begun: () => {
      let begun = 0;
      for (; begun < 1_000 && pace.waitMs() === 0; begun += 1) pace.begin();
      return begun;
    },
  };
}

test('as long as few units are at the store, all requests are begun', () => {
  const { begun, has } = start();
  has(limits.unitsQuietMax);
  assert.equal(begun(), 1_000);
});

test('where more are, a few are begun in each while', () => {
  const { begun, has, clock, pace } = start();
  has(limits.unitsQuietMax + 1);
  assert.equal(begun(), limits.begunPerPace);
  clock.advance(20);
  assert.equal(begun(), 0);
  assert.equal(pace.waitMs(), 30);
  clock.advance(30);
  assert.equal(begun(), limits.begunPerPace);
});

test('a store that is empty for a moment is not quiet: a while without waiting units is', () => {
  const { begun, has, clock } = start();
  has(limits.unitsQuietMax + 1);
  assert.equal(begun(), limits.begunPerPace);
  has(0);
  assert.equal(begun(), 0);
  clock.advance(limits.paceMs);
  assert.equal(begun(), limits.begunPerPace, 'the while before was busy');
  clock.advance(limits.paceMs);
  assert.equal(begun(), 1_000);
});
