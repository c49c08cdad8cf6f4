import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { backoffMs, every, sleep, withTimeout } from '../../src/lib/timing.ts';
import { createManualClock } from '../support/clock.ts';

/** A loop with a period of a second, its clock, and how often it ran. */
function everySecond() {
  const clock = createManualClock();
  const count = { runs: 0 };
  const period = () => 1_000;
  const loop = every(clock, period, () => {
    count.runs += 1;
  });
  return { clock, count, loop };
}

/** The same, but each run ends when its step is resolved. */
function stepping() {
  const clock = createManualClock();
  const steps: PromiseWithResolvers<void>[] = [];
  const period = () => 1_000;
  const loop = every(clock, period, () => {
    const step = Promise.withResolvers<void>();
    steps.push(step);
    return step.promise;
  });
  return { clock, steps, loop };
}

describe('every', () => {
  test('runs at once and then every period', async () => {
    const { clock, count, loop } = everySecond();
    await loop.start();
    assert.equal(count.runs, 1);
    clock.advance(3_500);
    assert.equal(count.runs, 4);
    await loop.stop();
    clock.advance(10_000);
    assert.equal(count.runs, 4);
  });

  test('a wake runs the work now, and the next period begins with that run', async () => {
    const { clock, count, loop } = everySecond();
    loop.wake();
    assert.equal(count.runs, 0, 'before the start');
    await loop.start();
    clock.advance(600);
    loop.wake();
    assert.equal(count.runs, 2);
    clock.advance(999);
    assert.equal(count.runs, 2);
    clock.advance(1);
    assert.equal(count.runs, 3);
    await loop.stop();
    loop.wake();
    clock.advance(10_000);
    assert.equal(count.runs, 3);
  });

  test('a wake during a run is followed by one more run at once', async () => {
    const { clock, steps, loop } = stepping();
    const first = loop.start();
    loop.wake();
    loop.wake();
    assert.equal(steps.length, 1);
    steps[0]?.resolve();
    await first;
    clock.advance(0);
    assert.equal(steps.length, 2);
    steps[1]?.resolve();
    await loop.stop();
    clock.advance(5_000);
    assert.equal(steps.length, 2);
  });

  test('never has two runs at a time, and stop waits for the one in progress', async () => {
    const { clock, steps, loop } = stepping();
    const first = loop.start();
    clock.advance(2_500);
    assert.equal(steps.length, 1);
    steps[0]?.resolve();
    await first;
    clock.advance(0);
    assert.equal(steps.length, 2, 'a run that took too long is followed at once');
    let hasStopped = false;
    const stopped = loop.stop().then(() => {
      hasStopped = true;
    });
    await Promise.resolve();
    assert.equal(hasStopped, false);
    steps[1]?.resolve();
    await stopped;
    clock.advance(5_000);
    assert.equal(steps.length, 2);
  });
});

describe('withTimeout', () => {
  const reason = new Error('no response within 1 s');

  test('returns the result of the work, and leaves no timer', async () => {
    const clock = createManualClock();
    assert.equal(await withTimeout(clock, { ms: 1_000, reason }, async () => 7), 7);
    assert.equal(clock.nextDueMs(), undefined);
  });

  test('rejects with its reason when the time is over, also where the work ignores the signal', async () => {
    const clock = createManualClock();
    const late = withTimeout(clock, { ms: 1_000, reason }, () => new Promise(() => {}));
    clock.advance(1_000);
    await assert.rejects(late, reason);
  });

  test('rejects with the reason of a signal that stops it, before or during the work', async () => {
    const clock = createManualClock();
    const stop = new AbortController();
    const work = withTimeout(clock, { ms: 1_000, reason, stopped: stop.signal }, () => new Promise(() => {}));
    stop.abort(new Error('stopped'));
    await assert.rejects(work, /^Error: stopped$/);
    const begunLate = withTimeout(clock, { ms: 1_000, reason, stopped: stop.signal }, async () => 7);
    await assert.rejects(begunLate, /^Error: stopped$/);
    assert.equal(clock.nextDueMs(), undefined);
  });
});

test('sleep ends with its time or with its signal', async () => {
  const clock = createManualClock();
  const whole = sleep(clock, 1_000);
  clock.advance(1_000);
  await whole;
  const wake = new AbortController();
  const cut = sleep(clock, 1_000, wake.signal);
  wake.abort();
  await cut;
  assert.equal(clock.nextDueMs(), undefined);
});

test('backoff doubles with each failure up to its longest', () => {
  const rule = { firstMs: 100, longestMs: 1_000 };
  assert.deepEqual(
    [0, 1, 2, 3, 4, 5, 60].map((failures) => backoffMs(failures, rule)),
    [100, 100, 200, 400, 800, 1_000, 1_000],
  );
});
