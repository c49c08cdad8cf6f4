import assert from 'node:assert/strict';
import { ApiError } from '../../../src/domain/reason.ts';
import type { Admission } from '../../../src/store/store.ts';
import { fingerprint, nowS, refused, toFile } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const month = '2026-11';

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

/** Fails after its first change with an internal error: there is no such caller. */
const broken = toFile({ callerId: 99, caller: 'nobody' });

/** The admission of calls. */
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
      store.execute({ admission: admission('n', 'k'), effect: broken }),
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
}
