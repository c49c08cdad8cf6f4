import assert from 'node:assert/strict';
import { test } from 'node:test';
import { askProvenance } from '../support/calls.ts';
import { createManualClock } from '../support/clock.ts';
import { startService } from '../support/service.ts';

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
