import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform, type Store } from '../../../src/store/store.ts';
import { noon, openGallery, openOrder, orderIn, type StoreEngine, settled, states } from './fixtures.ts';

const dayMs = 86_400_000;

/** The RELEASED orders of all shares, each share by itself. */
async function listed(store: Store, shares: number, sinceMs: number): Promise<(readonly string[])[]> {
  const all = Array.from({ length: shares }, (_, share) => share);
  return Promise.all(all.map((share) => perform(store, { kind: 'ListReleased', share, shares, sinceMs })));
}

/** Which RELEASED orders there are to look up. */
export function releasedPromises(engine: StoreEngine): void {
  test('each RELEASED order is in one share, neighbors in different ones, and no other order in any', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const released: string[] = [];
    for (let count = 0; count < 6; count += 1) released.push((await orderIn(store, by, 'RELEASED')).escrowId);
    for (const state of states.filter((each) => each !== 'RELEASED')) await orderIn(store, by, state);
    const three = await listed(store, 3, noon.atMs);
    assert.deepEqual(
      three.map((share) => share.length),
      [2, 2, 2],
    );
    assert.deepEqual(three.flat().sort(), released.sort());
    assert.deepEqual((await listed(store, 1, noon.atMs))[0]?.toSorted(), released);
    assert.deepEqual((await listed(store, 1_000, noon.atMs)).flat().sort(), released);
    assert.deepEqual(await listed(store, 3, noon.atMs), three);
  });

  test('a RELEASED order is listed if it was released or its payment changed since the given time', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'RELEASED');
    const since = async (ms: number) => (await listed(store, 1, ms)).flat();
    assert.deepEqual(await since(noon.atMs), [escrowId]);
    assert.deepEqual(await since(noon.atMs + 1), []);
    const later = { ...noon, atMs: noon.atMs + dayMs };
    await settled(store, escrowId, { afterPayout: { payment: 'DISPUTED' } }, later);
    assert.deepEqual(await since(later.atMs), [escrowId]);
    assert.deepEqual(await since(later.atMs + 1), []);
  });
}
