import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRateLimit } from '../../src/api/admission.ts';

/** A rate limit and its clock. */
function limitAt(startMs = 0) {
  const clock = { ms: startMs };
  return { clock, limit: createRateLimit(() => clock.ms) };
}

for (const callsPerSecond of [10, 50, 200]) {
  test(`${callsPerSecond} immediate calls are allowed, and the next one is rejected`, () => {
    const { limit } = limitAt();
    for (let call = 1; call <= callsPerSecond; call += 1) {
      const { allowed, remaining, retryAfterS } = limit(1, callsPerSecond);
      assert.deepEqual(
        { allowed, remaining, retryAfterS },
        {
          allowed: true,
          remaining: callsPerSecond - call,
          retryAfterS: 0,
        },
      );
    }
    const rejected = limit(1, callsPerSecond);
    assert.deepEqual(rejected, { callsPerSecond, allowed: false, remaining: 0, resetS: 1, retryAfterS: 1 });
  });

  for (const startMs of [0, 1e-3, 123_456.789, 8.64e9 + 0.1]) {
    test(`calls at a steady ${callsPerSecond} a second are never rejected, on a clock at ${startMs} ms`, () => {
      const { clock, limit } = limitAt(startMs);
      for (let call = 0; call < callsPerSecond * 600; call += 1) {
        clock.ms = startMs + (call * 1_000) / callsPerSecond;
        assert.equal(limit(1, callsPerSecond).allowed, true, `call ${call}`);
      }
    });

    test(`after a burst, one call every 1/${callsPerSecond} s is allowed, on a clock at ${startMs} ms`, () => {
      const { clock, limit } = limitAt(startMs);
      for (let call = 0; call < callsPerSecond; call += 1) limit(1, callsPerSecond);
      for (let call = 1; call < callsPerSecond * 120; call += 1) {
        clock.ms = startMs + (call * 1_000) / callsPerSecond;
        assert.equal(limit(1, callsPerSecond).allowed, true, `call ${call}`);
        assert.equal(limit(1, callsPerSecond).allowed, false, `call ${call}, twice`);
      }
    });
  }
}

test('the remaining calls are exact while the burst is restored', () => {
  const { clock, limit } = limitAt();
  for (let call = 0; call < 10; call += 1) limit(1, 10);
  for (const [ms, remaining] of [
    [250, 1],
    [299, 0],
    [700, 4],
    [1_700, 9],
  ] as const) {
    clock.ms = ms;
    assert.equal(limit(1, 10).remaining, remaining, `after ${ms} ms`);
  }
});

test('rest restores the burst and no more than the burst', () => {
  const { clock, limit } = limitAt();
  limit(1, 10);
  clock.ms = 3_600_000;
  const allowed = Array.from({ length: 30 }, () => limit(1, 10)).filter((decision) => decision.allowed);
  assert.equal(allowed.length, 10);
});

test('each caller has a rate of its own', () => {
  const { limit } = limitAt();
  for (let call = 0; call < 11; call += 1) limit(1, 10);
  assert.equal(limit(1, 10).allowed, false);
  assert.equal(limit(2, 10).allowed, true);
  assert.equal(limit(2, 10).remaining, 8);
});

test('the times to wait and to a full burst are whole seconds, at least one', () => {
  const { clock, limit } = limitAt();
  for (let step = 0; step < 5_000; step += 1) {
    clock.ms = step * 7;
    const { allowed, resetS, retryAfterS } = limit(1, 10);
    assert.equal(resetS, 1);
    assert.equal(retryAfterS, allowed ? 0 : 1);
  }
});
