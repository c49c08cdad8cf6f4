import assert from 'node:assert/strict';
import { noon, states } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const dayMs = 86_400_000;

/** The RELEASED orders of all shares, each share by itself. */
async function listed(store: TestStore, shares: number, sinceMs: number): Promise<(readonly string[])[]> {
  const all = Array.from({ length: shares }, (_, share) => share);
  return Promise.all(all.map((share) => store.perform({ kind: 'ListReleased', share, shares, sinceMs })));
}

/** Which RELEASED orders there are to look up. */
export function releasedPromises({ test }: StoreTests): void {
  test('each RELEASED order is in one share, neighbors in different ones, and no other order in any', async (store) => {
    const released: string[] = [];
    for (let count = 0; count < 6; count += 1)
      released.push((await store.orderIn(store.gallery, 'RELEASED')).escrowId);
    for (const state of states.filter((each) => each !== 'RELEASED'))
      await store.orderIn(store.gallery, state);
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

  test('a RELEASED order is listed if it was released or its payment changed since the given time', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'RELEASED');
    const since = async (ms: number) => (await listed(store, 1, ms)).flat();
    assert.deepEqual(await since(noon.atMs), [escrowId]);
    assert.deepEqual(await since(noon.atMs + 1), []);
    const later = { ...noon, atMs: noon.atMs + dayMs };
    await store.settled(escrowId, { afterPayout: { payment: 'DISPUTED' } }, later);
    assert.deepEqual(await since(later.atMs), [escrowId]);
    assert.deepEqual(await since(later.atMs + 1), []);
  });
}
