import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createRateLimit, createRunningKeys, readIdempotencyKey } from '../../src/api/admission.ts';
import { askProvenance } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { apiError } from '../support/rejected.ts';
import { startService } from '../support/service.ts';

/** A rate limit and its clock. */
function limitAt(startMs = 0) {
  const clock = { ms: startMs };
  return { clock, limit: createRateLimit({ monotonicMs: () => clock.ms, after: () => () => {} }) };
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

for (const [what, sent] of [
  ['empty', ['']],
  ['quotes alone', ['""']],
  ['256 characters', ['k'.repeat(256)]],
  ['with a space', ['a b']],
  ['not ASCII', ['é']],
  ['sent twice', ['a', 'b']],
  ['sent twice with the same value', ['a', 'a']],
] as const) {
  test(`an Idempotency-Key is invalid: ${what}`, () => {
    assert.throws(() => readIdempotencyKey(sent), apiError('IDEMPOTENCY_KEY_INVALID', /1 to 255/));
  });
}

test('an Idempotency-Key has 1 to 255 visible ASCII characters, without one pair of quotes', () => {
  assert.equal(readIdempotencyKey([]), undefined);
  for (const key of ['k', 'k'.repeat(255), '!"~', '""k""'.slice(1, -1)])
    for (const sent of [key, `"${key}"`])
      assert.equal(readIdempotencyKey([sent]), sent === key ? key.replace(/^"(.*)"$/, '$1') : key);
});

test('a call counts in the month that its response names, even if the month changes during the call', async (t) => {
  const monthEndMs = Date.UTC(2026, 6, 1);
  const clock = createManualClock(monthEndMs - 60_000);
  let stepMs = 0;
  const passing = {
    ...clock,
    nowMs: () => {
      const nowMs = clock.nowMs();
      clock.setWall(nowMs + stepMs);
      return nowMs;
    },
  };
  const service = await startService(t, { clock: passing, limits: { pollMs: 3_600_000 } });
  for (const lookAtMs of [1, 2, 3, 4]) {
    const platform = await service.platform('ENTERPRISE', 5);
    const { callerId = 0 } = service.store.findKey(platform.apiKey) ?? {};
    // From here each read of the clock takes a millisecond, and the month changes at one of them.
    clock.setWall(monthEndMs - lookAtMs);
    stepMs = 1;
    const timestamp = String(monthEndMs / 1_000 - 1);
    const { headers } = await askProvenance(service, platform, 'none', { timestamp });
    stepMs = 0;
    const counted = (month: string) => service.execute({ kind: 'CountCalls', callerId, month });
    const [, resetS] = /"monthly";r=4;t=(\d+)/.exec(String(headers.ratelimit)) ?? [];
    const [, monthS] = /"monthly";q=5;w=(\d+)/.exec(String(headers['ratelimit-policy'])) ?? [];
    const isJune = Number(monthS) === 30 * 86_400;
    assert.ok(isJune || Number(monthS) === 31 * 86_400);
    assert.equal(Number(resetS), isJune ? 1 : Number(monthS));
    assert.deepEqual(
      [await counted('2026-06'), await counted('2026-07')],
      isJune ? [1, 0] : [0, 1],
      `${lookAtMs} reads before the month changes`,
    );
  }
});

test('while a call with an Idempotency-Key runs, its repetition and other requests under the key are rejected', () => {
  const begin = createRunningKeys();
  const call = { callerId: 1, key: 'k', requestId: 'r', fingerprint: Uint8Array.of(1) };
  const end = begin(call);
  assert.throws(() => begin(call), apiError('IDEMPOTENCY_IN_PROGRESS'));
  assert.throws(() => begin({ ...call, fingerprint: Uint8Array.of(2) }), apiError('IDEMPOTENCY_KEY_REUSED'));
  begin({ ...call, callerId: 2 });
  end();
  begin(call);
});
