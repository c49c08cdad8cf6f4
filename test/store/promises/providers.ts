import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  addPlatform,
  frozen,
  openStore,
  orderIn,
  refused,
  resolved,
  type StoreEngine,
  settled,
  stopped,
} from './fixtures.ts';

/** Where the money of orders is. */
export function providerPromises(engine: StoreEngine): void {
  test('open orders keep a store at their provider, until the last has ended', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    await perform(store, { kind: 'UseProvider', name: 'simulated' });
    const { escrowId } = await frozen(store, by);
    await refused(perform(store, { kind: 'UseProvider', name: 'stripe' }), 'ESCROW_STATE_CONFLICT');
    await perform(store, { kind: 'UseProvider', name: 'simulated' });
    await resolved(store, by, escrowId, 'RELEASE');
    await perform(store, { kind: 'UseProvider', name: 'stripe' });
    await frozen(store, by);
    await refused(perform(store, { kind: 'UseProvider', name: 'simulated' }), 'ESCROW_STATE_CONFLICT');
  });

  test('orders from before a store knew its provider are at the simulated one', async (t) => {
    const store = await openStore(t, engine);
    await orderIn(store, await addPlatform(store, 'gallery'), 'UNPAID');
    await assert.rejects(
      perform(store, { kind: 'UseProvider', name: 'stripe' }),
      /1.*simulated|simulated: 1/,
    );
    await perform(store, { kind: 'UseProvider', name: 'simulated' });
  });

  test('an order that is to be asked about, or waits for a person, keeps its store there though it ended', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { escrowId } = await orderIn(store, by, 'CLOSED');
    await settled(store, escrowId, { lookUpAtMs: 9 });
    await refused(perform(store, { kind: 'UseProvider', name: 'stripe' }), 'ESCROW_STATE_CONFLICT');
    await stopped(store, escrowId);
    await refused(perform(store, { kind: 'UseProvider', name: 'stripe' }), 'ESCROW_STATE_CONFLICT');
    await perform(store, {
      kind: 'Decide',
      by: tester,
      escrowId,
      decision: 'LOOK_AGAIN',
      instructionId: 'x',
      nowMs: 1,
    });
    await settled(store, escrowId, {});
    await perform(store, { kind: 'UseProvider', name: 'stripe' });
  });

  test('a store whose orders have all ended is at no provider yet', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    for (const state of ['RELEASED', 'REFUNDED', 'CLOSED'] as const) await orderIn(store, by, state);
    await perform(store, { kind: 'UseProvider', name: 'stripe' });
    await orderIn(store, by, 'FROZEN');
    await refused(perform(store, { kind: 'UseProvider', name: 'simulated' }), 'ESCROW_STATE_CONFLICT');
  });
}
