import assert from 'node:assert/strict';
import { ApiError } from '../../../src/domain/reason.ts';
import { type Admission, nonceRetentionS, type QuotaClaim } from '../../../src/store/store.ts';
import { fingerprint, nowS, ofNobody, refused, toFile } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const [month, december] = ['2026-11', '2026-12'];

/** Admits a call under a quota. Returns the count, with the reason if the call is not admitted. */
async function called(store: TestStore, callerId: number, over: Partial<QuotaClaim> = {}) {
  const quota = { callerId, month, limit: undefined, take: true, ...over };
  const { outcome, calls } = await store.execute({ admission: { nowS, quota } });
  return outcome.kind === 'NOT_ADMITTED' ? `${outcome.why} ${calls}` : calls;
}

/** The admission of a call of caller 1 with key 1: nonce, idempotency key and quota. */
function admission(
  nonce: string,
  key: string,
  { limit, print = fingerprint }: { readonly limit?: number; readonly print?: Uint8Array } = {},
): Admission {
  return {
    nowS,
    nonce: { keyId: 1, nonce },
    idempotency: { callerId: 1, key, requestId: 'first', fingerprint: print },
    quota: { callerId: 1, month, limit, take: true },
  };
}

/** The fingerprint of another request. */
const otherPrint = new Uint8Array(32);

/** What is left of calls: which of these nonces are not spent, how many are counted, how many artworks are filed. */
async function leftOf(store: TestStore, ...nonces: string[]) {
  const calls = await store.perform({ kind: 'CountCalls', callerId: 1, month });
  const filed = (await store.filingPages()).flat().length;
  const granted = await Promise.all(nonces.map((nonce) => store.spend(1, nonce)));
  return { unspent: nonces.filter((_, place) => granted[place]), calls, filed };
}

/** Whether an idempotency key stands for nothing yet. */
async function isFree(store: TestStore, key: string): Promise<boolean> {
  const idempotency = { callerId: 1, key, requestId: 'first', fingerprint: otherPrint };
  const { outcome } = await store.execute({ admission: { nowS, idempotency } });
  return outcome.kind !== 'NOT_ADMITTED';
}

/** Calls after one with the nonce n and the key k, for a quota of one call: the first check that fails decides. */
const rejected = [
  ['NONCE_REUSED', admission('n', 'k', { limit: 1 })],
  ['NONCE_REUSED', admission('n', 'another', { limit: 1 })],
  ['IDEMPOTENCY_KEY_REUSED', admission('m', 'k', { limit: 1, print: otherPrint })],
  ['QUOTA_EXCEEDED', admission('m', 'another', { limit: 1 })],
] as const;

/** The admission of calls: nonces, idempotency keys and quotas. */
export function admissionPromises({ test }: StoreTests): void {
  test('one request admits a call and runs its effect: nonce, key, quota and effect', async (store) => {
    const { outcome, calls } = await store.execute({
      admission: admission('n', 'k'),
      effect: toFile(store.gallery),
    });
    assert.equal(outcome.kind === 'DONE' && outcome.result.filingNo, 'AS-2026-000001');
    assert.equal(calls, 1);
    const crashed = await store.openCrashed();
    assert.deepEqual(await leftOf(crashed, 'n', 'other'), { unspent: ['other'], calls: 1, filed: 1 });
    assert.equal(await isFree(crashed, 'k'), false);
  });

  for (const [why, second] of rejected)
    test(`a call that gets ${why} consumes at most its nonce`, async (store) => {
      await store.execute({ admission: admission('n', 'k'), effect: toFile(store.gallery) });
      const again = await store.execute({ admission: second, effect: toFile(store.gallery) });
      assert.deepEqual(again, { outcome: { kind: 'NOT_ADMITTED', why }, calls: 1 });
      const unspent = why === 'NONCE_REUSED' ? ['m'] : [];
      assert.deepEqual(await leftOf(store, 'm'), { unspent, calls: 1, filed: 1 });
      assert.equal(await isFree(store, 'another'), true);
    });

  test('a replay is found before the quota: its nonce is consumed, and it does not count', async (store) => {
    const first = await store.execute({
      admission: admission('n', 'k', { limit: 1 }),
      effect: toFile(store.gallery),
    });
    const again = await store.execute({
      admission: admission('m', 'k', { limit: 1 }),
      effect: toFile(store.gallery),
    });
    assert.deepEqual(again, {
      outcome: { ...first.outcome, isReplay: true },
      calls: 1,
      claimedBy: 'first',
    });
    assert.deepEqual(await leftOf(store, 'm'), { unspent: [], calls: 1, filed: 1 });
  });

  test('a rejected effect consumes the nonce and the quota, and its key keeps the error', async (store) => {
    const apiError = {
      reason: 'VALIDATION_FAILED',
      message: 'author is required',
      hints: {},
      violations: [{ field: 'author', rule: 'is required' }],
    } as const;
    const effect = { kind: 'Reject', apiError } as const;
    const { outcome, calls } = await store.execute({ admission: admission('n', 'k'), effect });
    assert.deepEqual([outcome, calls], [{ kind: 'REJECTED', apiError, isReplay: false }, 1]);
    assert.deepEqual(await leftOf(store, 'n'), { unspent: [], calls: 1, filed: 0 });
    assert.equal(await isFree(store, 'k'), false);
    await refused(store.perform(effect), 'VALIDATION_FAILED');
  });

  test('an effect that fails consumes the nonce and the quota, leaves the key free, and changes nothing', async (store) => {
    await assert.rejects(
      store.execute({ admission: admission('n', 'k'), effect: ofNobody }),
      (error) => !(error instanceof ApiError),
    );
    assert.deepEqual(await leftOf(store, 'n'), { unspent: [], calls: 1, filed: 0 });
    assert.equal(await isFree(store, 'k'), true);
    assert.equal((await store.perform(toFile(store.gallery))).filingNo, 'AS-2026-000001');
  });

  test('an admission without an effect admits the call and claims no key', async (store) => {
    const { outcome, calls } = await store.execute({ admission: admission('n', 'k') });
    assert.deepEqual(outcome, { kind: 'DONE', result: undefined, isReplay: false });
    assert.equal(calls, 1);
    assert.deepEqual(await leftOf(store, 'n'), { unspent: [], calls: 1, filed: 0 });
    assert.equal(await isFree(store, 'k'), true);
  });

  test('a nonce can be spent once, by each key', async (store) => {
    const { id } = await store.addPlatform('auction house');
    const spent = [];
    for (const nonce of ['n', 'n', 'N', 'n ']) spent.push(await store.spend(store.gallery.id, nonce));
    for (const nonce of ['n', 'n']) spent.push(await store.spend(id, nonce));
    assert.deepEqual(spent, [true, false, true, true, true, false]);
  });

  test(`a nonce is remembered for ${nonceRetentionS} s, and not much longer`, async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS);
    let now = nowS;
    for (const shift of [0, 329, 330, 331, 659]) {
      now += 10_000 + shift;
      const nonce = `spent at ${now}`;
      assert.equal(await claim(nonce, now), true);
      for (const later of [1, 330, nonceRetentionS - 1]) {
        // Other nonces are spent meanwhile, which may sweep.
        assert.equal(await claim(`${now} and ${later}`, now + later), true);
        assert.equal(await claim(nonce, now + later), false, `${later} s after ${now}`);
      }
      assert.equal(await claim(nonce, now + nonceRetentionS + 1), true, `forgotten, spent at ${now}`);
    }
  });

  test(`a nonce stays spent if the clock is set back by less than ${nonceRetentionS} s`, async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS);
    for (const shift of [0, 329, 330, 331, 659]) {
      const now = nowS + shift;
      const nonce = `spent at ${now}`;
      assert.equal(await claim(nonce, now), true);
      for (const back of [1, 330, nonceRetentionS - 1])
        assert.equal(await claim(nonce, now - back), false, `spent at ${now}, ${back} s before`);
    }
  });

  test('nonces spent while the clock is ahead sweep none that are needed once it is set back', async (store) => {
    const claim = (nonce: string, atS: number, sweepAtS = atS) => store.spend(1, nonce, atS, sweepAtS);
    const claimed = (count: number, one: (each: number) => Promise<boolean>) =>
      Promise.all(Array.from({ length: count }, (_, each) => one(each)));
    assert.ok((await claimed(100, (each) => claim(`before ${each}`, nowS))).every(Boolean));
    assert.ok((await claimed(500, (each) => claim(`ahead ${each}`, nowS + 10_000, nowS))).every(Boolean));
    assert.ok(!(await claimed(100, (each) => claim(`before ${each}`, nowS + 10))).some(Boolean));
  });

  test('a nonce spent after the clock was set back is forgotten at its time', async (store) => {
    const claim = (nonce: string, atS: number) => store.spend(1, nonce, atS, nowS);
    assert.equal(await claim('ahead', nowS + 10_000), true);
    assert.equal(await claim('back', nowS), true);
    assert.equal(await claim('back', nowS + nonceRetentionS - 1), false);
    assert.equal(await claim('back', nowS + nonceRetentionS + 1), true);
  });

  test('nonces stay spent when the store is opened again, whatever the clock is set to', async (before) => {
    const spentAt = [nowS + 3_000, nowS];
    for (const now of spentAt) assert.equal(await before.spend(1, `spent at ${now}`, now), true);
    await before.close();
    const after = await before.openAgain();
    for (const now of spentAt)
      for (const shift of [600, 1, -600])
        assert.equal(await after.spend(1, `spent at ${now}`, now + shift), false);
  });

  test('as many concurrent calls are admitted as the month has left', async (store) => {
    await called(store, 1, { limit: 3 });
    const counts = await Promise.all([1, 2, 3, 4].map(() => called(store, 1, { limit: 3 })));
    assert.deepEqual(counts, [2, 3, 'QUOTA_EXCEEDED 3', 'QUOTA_EXCEEDED 3']);
    assert.equal(await store.perform({ kind: 'CountCalls', callerId: 1, month: month }), 3);
    assert.equal(await called(store, 1, { limit: 2 }), 'QUOTA_EXCEEDED 3', 'a quota that was lowered since');
    assert.equal(await called(store, 1, { limit: 3, month: december }), 1);
    assert.equal(await called(store, 1), 4, 'without a limit');
  });

  test('a call that does not count gets the count and is admitted', async (store) => {
    assert.equal(await called(store, 1, { take: false }), 0);
    await called(store, 1, { limit: 1 });
    assert.equal(await called(store, 1, { limit: 1, take: false }), 1);
    assert.equal(await called(store, 1, { limit: 1, take: false }), 1);
    assert.equal((await store.execute({ admission: { nowS } })).calls, undefined);
  });

  test('calls are counted per caller and month', async (store) => {
    for (const caller of [1, 1, 2]) await called(store, caller);
    await called(store, 1, { month: december });
    const counts = [];
    for (const callerId of [1, 2, 3])
      for (const each of [month, december])
        counts.push(await store.perform({ kind: 'CountCalls', callerId, month: each }));
    assert.deepEqual(counts, [2, 1, 1, 0, 0, 0]);
  });
}
