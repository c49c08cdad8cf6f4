import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createAdmission } from '../../src/access/admission.ts';
import type { Platform } from '../../src/access/principal.ts';
import { createCalendar } from '../../src/domain/calendar.ts';
import { createManualClock } from '../support/clock.ts';
import { fileScope } from '../support/file-scope.ts';
import { startService } from '../support/service.ts';

const monthEndMs = Date.UTC(2026, 6, 1);
const { store: everything, keyRing } = await startService(fileScope);
const store = everything.admission;
const calendar = createCalendar('UTC');
let callers = 1_000;

/** A platform with a quota of its own, and an admission whose clock stands in June. */
function platformWith(monthlyQuota: number | undefined) {
  callers += 1;
  const platform: Platform = {
    kind: 'platform',
    callerId: callers,
    caller: `platform ${callers}`,
    tier: 'ENTERPRISE',
    monthlyQuota,
  };
  const clock = createManualClock(monthEndMs - 5_000);
  const admission = createAdmission({ store, keyRing, clock, calendar });
  const counted = (month = '2026-06') => store.callsIn(platform.callerId, month);
  return { platform, clock, admission, counted };
}

test('calls that have not ended are taken of the quota, and count when they end', async () => {
  const { platform, admission, counted } = platformWith(2);
  const first = await admission.takeQuota(platform);
  const second = await admission.takeQuota(platform);
  assert.deepEqual([first.allowed, first.remaining], [true, 1]);
  assert.deepEqual([second.allowed, second.remaining], [true, 0]);
  assert.equal((await admission.takeQuota(platform)).allowed, false);
  assert.equal(await counted(), 0);
  await admission.endCall(platform, first, true);
  assert.equal(await counted(), 1);
  assert.equal((await admission.takeQuota(platform)).allowed, false);
  assert.equal((await admission.quota(platform)).remaining, 0);
});

test('a call that ends without counting can be made again', async () => {
  const { platform, admission, counted } = platformWith(1);
  for (let call = 0; call < 3; call += 1) {
    const taken = await admission.takeQuota(platform);
    assert.equal(taken.allowed, true);
    await admission.endCall(platform, taken, false);
    assert.equal((await admission.quota(platform)).remaining, 1);
  }
  assert.equal(await counted(), 0);
});

test('calls that begin and end at once never get past the quota, nor are they kept from it', async () => {
  const { platform, admission, counted } = platformWith(7);
  async function call(): Promise<boolean> {
    const taken = await admission.takeQuota(platform);
    if (taken.allowed) await admission.endCall(platform, taken, true);
    return taken.allowed;
  }
  const allowed: boolean[] = [];
  const begun: Promise<unknown>[] = [];
  for (let each = 0; each < 40; each += 1) {
    begun.push(call().then((let_in) => allowed.push(let_in)));
    // So that some end while others begin, at every distance.
    for (let turns = each % 5; turns > 0; turns -= 1) await undefined;
  }
  await Promise.all(begun);
  assert.equal(allowed.filter(Boolean).length, 7);
  assert.equal(await counted(), 7);
});

test('without a quota every call is allowed and counted', async () => {
  const { platform, admission, counted } = platformWith(undefined);
  for (let call = 0; call < 3; call += 1) {
    const taken = await admission.takeQuota(platform);
    assert.deepEqual([taken.allowed, taken.limit], [true, undefined]);
    await admission.endCall(platform, taken, true);
  }
  assert.equal(await counted(), 3);
});

test('a call counts in the month that it is told of, though the month turns at that moment', async () => {
  const { platform, counted } = platformWith(5);
  const clock = createManualClock();
  let nowMs = monthEndMs - 2;
  // Time passes with each look at the clock.
  const passing = {
    ...clock,
    nowMs: () => {
      nowMs += 1;
      return nowMs;
    },
  };
  const admission = createAdmission({ store, keyRing, clock: passing, calendar });
  const taken = await admission.takeQuota(platform);
  assert.deepEqual([taken.month, taken.monthS, taken.resetS], ['2026-06', 30 * 86_400, 1]);
  await admission.endCall(platform, taken, true);
  assert.deepEqual([await counted('2026-06'), await counted('2026-07')], [1, 0]);
});
