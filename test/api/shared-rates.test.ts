import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { createRateLimit } from '../../src/api/admission.ts';
import { type MergeRates, mergeRatesOf } from '../../src/api/shared-rates.ts';
import { sleep } from '../../src/lib/timing.ts';
import type { Store } from '../../src/store/store.ts';
import { createManualClock, type ManualClock } from '../support/clock.ts';

/** Merges as PostgreSQL does, by a clock of its own, `delayMs` after a request and before the response. */
function createMerge(clock: ManualClock, delayMs: number): MergeRates {
  const arrivals = new Map<number, number>();
  return async ({ periodMs, used }) => {
    await sleep(clock, delayMs);
    const startMs = clock.nowMs() - periodMs;
    const merged = used.map(({ callerId, usedMs }) => {
      const arrival = Math.max(arrivals.get(callerId) ?? 0, startMs) + usedMs;
      arrivals.set(callerId, arrival);
      return { callerId, arrivalMs: arrival - startMs };
    });
    await sleep(clock, delayMs);
    return merged;
  };
}

/** Rate limits of several instances, which started at different times. */
function createLimits(clock: ManualClock, count: number, merge: MergeRates | undefined) {
  return Array.from({ length: count }, (_, place) => {
    const startedMs = place * 123_456.789;
    const { after } = clock;
    return createRateLimit({ monotonicMs: () => clock.monotonicMs() + startedMs, after }, merge);
  });
}

/** Advances the clock by milliseconds, and calls back after each. */
async function pass(clock: ManualClock, ms: number, each: (passedMs: number) => void): Promise<void> {
  for (let passedMs = 1; passedMs <= ms; passedMs += 1) {
    clock.advance(1);
    await nextTurn();
    each(passedMs);
  }
}

/** Calls at ten times the rate at each of two instances for ten seconds. Returns the share of what one instance would allow. */
async function shareOfFlood(
  rate: number,
  clock: ManualClock,
  merge: MergeRates | undefined,
): Promise<number> {
  const limits = createLimits(clock, 2, merge);
  const seconds = 10;
  let [sent, allowed] = [0, 0];
  await pass(clock, seconds * 1_000, (passedMs) => {
    for (; sent < (passedMs * 10 * rate) / 1_000; sent += 1)
      for (const limit of limits) if (limit(1, rate).allowed) allowed += 1;
  });
  return allowed / (rate * (1 + seconds));
}

for (const rate of [10, 50, 200])
  for (const delayMs of [1, 50])
    test(`two instances allow a flood ${rate} calls a second, with responses after ${2 * delayMs} ms`, async () => {
      const clock = createManualClock();
      const share = await shareOfFlood(rate, clock, createMerge(clock, delayMs));
      assert.ok(share >= 0.9 && share <= 1.1, `${share}`);
    });

test('two instances that do not share allow a flood twice the rate', async () => {
  const share = await shareOfFlood(50, createManualClock(), undefined);
  assert.ok(share > 1.9, `${share}`);
});

test('a caller that turns from one instance to another for each burst has its rate and a burst at each', async () => {
  const clock = createManualClock();
  const limits = createLimits(clock, 2, createMerge(clock, 5));
  const rate = 50;
  let allowed = 0;
  await pass(clock, 30_000, (passedMs) => {
    const limit = limits[Math.floor(passedMs / 1_000) % 2];
    if (limit?.(1, rate).allowed) allowed += 1;
  });
  assert.ok(allowed <= rate * (30 + 2), `${allowed}`);
});

test('sharing changes no decision about a caller that calls one instance', async () => {
  const clock = createManualClock();
  const merge = createMerge(clock, 7);
  const [shared, , alone] = [...createLimits(clock, 2, merge), ...createLimits(clock, 1, undefined)];
  const rate = 200;
  const send = (calls: number) => {
    for (let call = 0; call < calls; call += 1) assert.deepEqual(shared?.(1, rate), alone?.(1, rate));
  };
  send(rate);
  // The whole rate, a pause, bursts late in what is reported together, and then more than the rate.
  await pass(clock, 20_000, (passedMs) => {
    if (passedMs < 5_000) send(passedMs % 5 === 0 ? 1 : 0);
    else if (passedMs > 8_000 && passedMs < 12_000)
      send(passedMs % 1_990 === 0 ? rate : Number(passedMs % 195 === 0));
    else if (passedMs > 12_000) send(2);
  });
});

test('each caller has its calls at all instances, and those during a report', async () => {
  const clock = createManualClock();
  const [one, other] = createLimits(clock, 2, createMerge(clock, 50));
  for (let call = 0; call < 10; call += 1) one?.(1, 10);
  one?.(2, 10);
  other?.(2, 10);
  other?.(1, 10);
  await pass(clock, 250, () => {});
  other?.(1, 10);
  await pass(clock, 100, () => {});
  assert.deepEqual([other?.(1, 10).remaining, other?.(2, 10).remaining], [0, 9]);
});

test('after a burst at both instances, no call is left and the times to wait are those of both', async () => {
  const clock = createManualClock();
  const limits = createLimits(clock, 2, createMerge(clock, 5));
  for (let call = 0; call < 10; call += 1) for (const limit of limits) limit(1, 10);
  await pass(clock, 250, () => {});
  // The report of the last instance was the second.
  const expected = { callsPerSecond: 10, allowed: false, remaining: 0, resetS: 2, retryAfterS: 1 };
  assert.deepEqual(limits[1]?.(1, 10), expected);
});

test('while nothing is allowed, nothing is reported', async () => {
  const clock = createManualClock();
  const merge = createMerge(clock, 5);
  let reports = 0;
  const [limit] = createLimits(clock, 1, (command) => {
    reports += 1;
    return merge(command);
  });
  assert.equal(clock.nextDueMs(), undefined);
  limit?.(1, 10);
  limit?.(2, 10);
  await pass(clock, 500, () => {});
  assert.deepEqual([reports, clock.nextDueMs()], [1, undefined]);
});

test('if reports fail, an instance keeps its own limits, and reports later calls', async () => {
  const clock = createManualClock();
  const merge = createMerge(clock, 5);
  let isFailing = true;
  const [limit, other] = createLimits(clock, 2, async (command) => {
    if (isFailing) throw new Error('The store cannot be reached.');
    return merge(command);
  });
  const burst = () =>
    Array.from({ length: 30 }, () => limit?.(1, 10)).filter((taken) => taken?.allowed).length;
  assert.equal(burst(), 10);
  await pass(clock, 500, () => {});
  assert.equal(burst(), 5);
  isFailing = false;
  await pass(clock, 500, () => {});
  assert.equal(burst(), 5);
  other?.(1, 10);
  await pass(clock, 250, () => {});
  assert.equal(other?.(1, 10).remaining, 5);
});

test('an instance reports its rates only while others serve', async () => {
  let [others, reports] = [0, 0];
  const execute = async () => {
    reports += 1;
    return { outcome: { kind: 'DONE', result: [], isReplay: false } };
  };
  const instances = { isLeading: () => true, others: () => others };
  const merge = mergeRatesOf({ execute: execute as unknown as Store['execute'], instances });
  const report = { kind: 'MergeRates', periodMs: 200, used: [] } as const;
  assert.deepEqual(await merge?.(report), []);
  assert.equal(reports, 0);
  others = 1;
  await merge?.(report);
  assert.equal(reports, 1);
});
