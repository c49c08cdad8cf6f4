import assert from 'node:assert/strict';
import { tester } from '../../support/audit-log.ts';
import { refused } from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const use = (store: TestStore, name: string) => store.perform({ kind: 'UseProvider', name });

/** The payment provider of a store. */
export function providerPromises({ test }: StoreTests): void {
  test('a store changes its provider only once all its orders have ended', async (store) => {
    const by = store.gallery;
    for (const state of ['RELEASED', 'REFUNDED', 'CLOSED'] as const) await store.orderIn(by, state);
    await use(store, 'simulated');
    const { escrowId } = await store.frozen(by);
    await refused(use(store, 'stripe'), 'ESCROW_STATE_CONFLICT');
    await use(store, 'simulated');
    await store.resolved(by, escrowId, 'RELEASE');
    await use(store, 'stripe');
    await store.frozen(by);
    await refused(use(store, 'simulated'), 'ESCROW_STATE_CONFLICT');
  });

  test('orders of a store without a provider belong to the simulated one', async (store) => {
    await store.orderIn(store.gallery, 'UNPAID');
    await assert.rejects(use(store, 'stripe'), /1.*simulated|simulated: 1/);
    await use(store, 'simulated');
  });

  test('a store keeps its provider while an ended order is due or needs a review', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'CLOSED');
    await store.settled(escrowId, { lookUpAtMs: 9 });
    await refused(use(store, 'stripe'), 'ESCROW_STATE_CONFLICT');
    await store.stopped(escrowId);
    await refused(use(store, 'stripe'), 'ESCROW_STATE_CONFLICT');
    await store.perform({
      ...{ kind: 'Decide', by: tester, escrowId, decision: 'LOOK_AGAIN' },
      ...{ instructionId: 'x', nowMs: 1 },
    });
    await store.settled(escrowId, {});
    await use(store, 'stripe');
  });
}
