import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform, type QuotaClaim, type Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { nowS, openStore, type StoreEngine } from './fixtures.ts';

const [november, december] = ['2026-11', '2026-12'];

/** Counts a call of a caller, or only tells how many were: what is told then. */
async function called(store: Store, callerId: number, over: Partial<QuotaClaim> = {}) {
  const quota = { callerId, month: november, limit: undefined, take: true, ...over };
  const { outcome, calls } = await store.execute({ admission: { nowS, quota } });
  return outcome.kind === 'NOT_ADMITTED' ? `${outcome.why} ${calls}` : calls;
}

/** Calls counted in a month. */
export function quotaPromises(engine: StoreEngine): void {
  test('calls at once are all counted, and each is told how many there are', async (t) => {
    const store = await openStore(t, engine);
    const told = await Promise.all(Array.from({ length: 20 }, () => called(store, 1)));
    assert.deepEqual(
      told,
      Array.from({ length: 20 }, (_, place) => place + 1),
    );
    assert.equal(await perform(store, { kind: 'CountCalls', callerId: 1, month: november }), 20);
  });

  test('of calls at once, as many are let in as the month has left', async (t) => {
    const store = await openStore(t, engine);
    await called(store, 1, { limit: 3 });
    const told = await Promise.all([1, 2, 3, 4].map(() => called(store, 1, { limit: 3 })));
    assert.deepEqual(told, [2, 3, 'QUOTA_EXCEEDED 3', 'QUOTA_EXCEEDED 3']);
    assert.equal(await perform(store, { kind: 'CountCalls', callerId: 1, month: november }), 3);
    assert.equal(await called(store, 1, { limit: 2 }), 'QUOTA_EXCEEDED 3', 'a quota that was lowered since');
    assert.equal(await called(store, 1, { limit: 3, month: december }), 1);
    assert.equal(await called(store, 1), 4, 'without a limit');
  });

  test('a call that is not to be counted is told how many were, and is let in', async (t) => {
    const store = await openStore(t, engine);
    assert.equal(await called(store, 1, { take: false }), 0);
    await called(store, 1, { limit: 1 });
    assert.equal(await called(store, 1, { limit: 1, take: false }), 1);
    assert.equal(await called(store, 1, { limit: 1, take: false }), 1);
    assert.equal((await store.execute({ admission: { nowS } })).calls, undefined);
  });

  test('each caller and each month counts for itself', async (t) => {
    const store = await openStore(t, engine);
    for (const caller of [1, 1, 2]) await called(store, caller);
    await called(store, 1, { month: december });
    const counted = [];
    for (const callerId of [1, 2, 3])
      for (const month of [november, december])
        counted.push(await perform(store, { kind: 'CountCalls', callerId, month }));
    assert.deepEqual(counted, [2, 1, 1, 0, 0, 0]);
  });

  test('the count survives opening again, and other open stores see it', async (t) => {
    const dataDir = temporaryFolder(t);
    const [before, after] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    await called(before, 1);
    assert.equal(await perform(after, { kind: 'CountCalls', callerId: 1, month: november }), 1);
    await before.close();
    await called(after, 1);
    await after.close();
    const again = await openStore(t, engine, dataDir);
    assert.equal(await perform(again, { kind: 'CountCalls', callerId: 1, month: november }), 2);
  });
}
