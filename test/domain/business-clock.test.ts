import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBusinessClock } from '../../src/domain/clock.ts';
import { createManualClock } from '../support/clock.ts';

test('the business clock is ahead of the real one by as much as it was set, and its timers keep real time', () => {
  const real = createManualClock(1_000);
  const clock = createBusinessClock(real);
  assert.deepEqual([clock.nowMs(), clock.aheadMs()], [1_000, 0]);
  const called: number[] = [];
  clock.after(5_000, () => called.push(real.monotonicMs()));
  let advances = 0;
  clock.onAdvance(() => {
    advances += 1;
  });
  // As when another instance advances it, or a call is replayed.
  for (const seconds of [3_600, 86_400, 86_400, 3_600]) clock.setAhead(seconds);
  assert.equal(advances, 2);
  assert.deepEqual([clock.nowMs(), clock.aheadMs()], [86_401_000, 86_400_000]);
  assert.equal(clock.monotonicMs(), real.monotonicMs());
  real.advance(6_000);
  assert.deepEqual([called, clock.nowMs()], [[5_000], 86_407_000]);
  real.setWall(0);
  assert.equal(clock.nowMs(), 86_400_000);
});
