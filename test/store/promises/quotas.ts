import assert from 'node:assert/strict';
import type { QuotaClaim } from '../../../src/store/store.ts';
import { nowS } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const [november, december] = ['2026-11', '2026-12'];

/** Admits a call under a quota. Returns the count, with the reason if the call is not admitted. */
async function called(store: TestStore, callerId: number, over: Partial<QuotaClaim> = {}) {
  const quota = { callerId, month: november, limit: undefined, take: true, ...over };
  const { outcome, calls } = await store.execute({ admission: { nowS, quota } });
  return outcome.kind === 'NOT_ADMITTED' ? `${outcome.why} ${calls}` : calls;
}

/** Calls counted in a month. */
export function quotaPromises({ test }: StoreTests): void {
  test('as many concurrent calls are admitted as the month has left', async (store) => {
    await called(store, 1, { limit: 3 });
    const counts = await Promise.all([1, 2, 3, 4].map(() => called(store, 1, { limit: 3 })));
    assert.deepEqual(counts, [2, 3, 'QUOTA_EXCEEDED 3', 'QUOTA_EXCEEDED 3']);
    assert.equal(await store.perform({ kind: 'CountCalls', callerId: 1, month: november }), 3);
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
      for (const month of [november, december])
        counts.push(await store.perform({ kind: 'CountCalls', callerId, month }));
    assert.deepEqual(counts, [2, 1, 1, 0, 0, 0]);
  });
}
