import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform, type QuotaClaim, type Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { nowS, openStore, type StoreEngine } from './fixtures.ts';

const [november, december] = ['2026-11', '2026-12'];

/** Admits a call under a quota. Returns the count, with the reason if the call is not admitted. */
async function called(store: Store, callerId: number, over: Partial<QuotaClaim> = {}) {
  const quota = { callerId, month: november, limit: undefined, take: true, ...over };
  const { outcome, calls } = await store.execute({ admission: { nowS, quota } });
  return outcome.kind === 'NOT_ADMITTED' ? `${outcome.why} ${calls}` : calls;
}

/** Calls counted in a month. */
export function quotaPromises(engine: StoreEngine): void {
  test('as many concurrent calls are admitted as the month has left', async (t) => {
    const store = await openStore(t, engine);
    await called(store, 1, { limit: 3 });
    const counts = await Promise.all([1, 2, 3, 4].map(() => called(store, 1, { limit: 3 })));
    assert.deepEqual(counts, [2, 3, 'QUOTA_EXCEEDED 3', 'QUOTA_EXCEEDED 3']);
    assert.equal(await perform(store, { kind: 'CountCalls', callerId: 1, month: november }), 3);
    assert.equal(await called(store, 1, { limit: 2 }), 'QUOTA_EXCEEDED 3', 'a quota that was lowered since');
    assert.equal(await called(store, 1, { limit: 3, month: december }), 1);
    assert.equal(await called(store, 1), 4, 'without a limit');
  });

  test('a call that does not count gets the count and is admitted', async (t) => {
    const store = await openStore(t, engine);
    assert.equal(await called(store, 1, { take: false }), 0);
    await called(store, 1, { limit: 1 });
    assert.equal(await called(store, 1, { limit: 1, take: false }), 1);
    assert.equal(await called(store, 1, { limit: 1, take: false }), 1);
    assert.equal((await store.execute({ admission: { nowS } })).calls, undefined);
  });

  test('calls are counted per caller and month, in all open stores, and the counts survive a restart', async (t) => {
    const dataDir = temporaryFolder(t);
    const [one, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    for (const caller of [1, 1, 2]) await called(one, caller);
    await called(one, 1, { month: december });
    const counts = async (store: Store) => {
      const counted = [];
      for (const callerId of [1, 2, 3])
        for (const month of [november, december])
          counted.push(await perform(store, { kind: 'CountCalls', callerId, month }));
      return counted;
    };
    assert.deepEqual(await counts(other), [2, 1, 1, 0, 0, 0]);
    await one.close();
    await called(other, 1);
    await other.close();
    assert.deepEqual(await counts(await openStore(t, engine, dataDir)), [3, 1, 1, 0, 0, 0]);
  });
}
