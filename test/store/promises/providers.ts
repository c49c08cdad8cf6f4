import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  frozen,
  openGallery,
  openOrder,
  orderIn,
  refused,
  resolved,
  type StoreEngine,
  settled,
  stopped,
} from './fixtures.ts';

const use = (store: Store, name: string) => perform(store, { kind: 'UseProvider', name });

/** The payment provider of a store. */
export function providerPromises(engine: StoreEngine): void {
  test('a store changes its provider only once all its orders have ended', async (t) => {
    const { store, by } = await openGallery(t, engine);
    for (const state of ['RELEASED', 'REFUNDED', 'CLOSED'] as const) await orderIn(store, by, state);
    await use(store, 'simulated');
    const { escrowId } = await frozen(store, by);
    await refused(use(store, 'stripe'), 'ESCROW_STATE_CONFLICT');
    await use(store, 'simulated');
    await resolved(store, by, escrowId, 'RELEASE');
    await use(store, 'stripe');
    await frozen(store, by);
    await refused(use(store, 'simulated'), 'ESCROW_STATE_CONFLICT');
  });

  test('orders of a store without a provider belong to the simulated one', async (t) => {
    const { store, by } = await openGallery(t, engine);
    await orderIn(store, by, 'UNPAID');
    await assert.rejects(use(store, 'stripe'), /1.*simulated|simulated: 1/);
    await use(store, 'simulated');
  });

  test('a store keeps its provider while an ended order is due or needs a review', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'CLOSED');
    await settled(store, escrowId, { lookUpAtMs: 9 });
    await refused(use(store, 'stripe'), 'ESCROW_STATE_CONFLICT');
    await stopped(store, escrowId);
    await refused(use(store, 'stripe'), 'ESCROW_STATE_CONFLICT');
    await perform(store, {
      ...{ kind: 'Decide', by: tester, escrowId, decision: 'LOOK_AGAIN' },
      ...{ instructionId: 'x', nowMs: 1 },
    });
    await settled(store, escrowId, {});
    await use(store, 'stripe');
  });
}
