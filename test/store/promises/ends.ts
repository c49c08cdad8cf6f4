import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import { type OrderEnd, orderEnds } from '../../../src/domain/resolution.ts';
import { type Command, perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  caseOf,
  due,
  findInstruction,
  frozen,
  oneUnitHeld,
  opened,
  openGallery,
  openOrder,
  openStore,
  recordSent,
  refused,
  type StoreEngine,
  stopped,
  time,
  toResolve,
  transfersOf,
  workOf,
} from './fixtures.ts';

const later = time('2026-12-02T00:30:00+08:00');
const evidence = 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855';
const farMs = Number.MAX_SAFE_INTEGER;

/** `domain/resolution.ts` has the rules of all states. */
const endings: readonly (readonly [EscrowState, OrderEnd])[] = [
  ['UNPAID', 'CLOSED'],
  ['FROZEN', 'RELEASED'],
  ['FROZEN', 'REFUNDED'],
];

const ending = (escrowId: string, end: OrderEnd): Command<'EndOrder'> => ({
  ...{ kind: 'EndOrder', by: tester, escrowId, end, evidence, at: later },
});

const statusOf = async (store: Store, instructionId: string) => {
  const { status, reason } = (await findInstruction(store, instructionId)) ?? {};
  return [status, reason];
};

/** Orders that an operator ends with evidence. */
export function endPromises(engine: StoreEngine): void {
  for (const [state, end] of endings) {
    test(`a ${state} order can end as ${end}, and its filing can have another order`, async (t) => {
      const { store, by, escrowId, filingNo } = await openOrder(t, engine, state);
      if (state === 'FROZEN') await perform(store, toResolve(by, 'RELEASE', escrowId));
      await stopped(store, escrowId);
      const before = await caseOf(store, escrowId);
      const ended = await perform(store, ending(escrowId, end));
      assert.deepEqual(await caseOf(store, escrowId), ended);
      const { order, open, review, accepted } = ended;
      assert.deepEqual([order.state, order.pending, open, review], [end, undefined, [], undefined]);
      assert.equal(accepted, undefined);
      const change = { state: end, at: later.timestamp, byOperator: true };
      assert.deepEqual(order.history, [...before.order.history, change]);
      assert.equal(await transfersOf(store, filingNo), end === 'RELEASED' ? 1 : 0);
      assert.deepEqual(await due(store, later.atMs, farMs), [escrowId], 'it is looked up once more');
      const { events } = await perform(store, { kind: 'ReadAllEvents', after: undefined });
      assert.deepEqual(
        events.slice(before.order.history.length + 1).map(({ type }) => type),
        [`escrow.${end.toLowerCase()}`, ...(end === 'RELEASED' ? ['provenance.transferred'] : [])],
      );
      await refused(perform(store, ending(escrowId, end)), 'ESCROW_STATE_CONFLICT');
      assert.equal((await opened(store, by, filingNo)).filingNo, filingNo);
    });
  }

  test('a final order can end only in its state, and only if it is in review', async (t) => {
    const { store, escrowId, filingNo } = await openOrder(t, engine, 'RELEASED');
    await refused(perform(store, ending(escrowId, 'RELEASED')), 'ESCROW_STATE_CONFLICT');
    await stopped(store, escrowId);
    const before = await caseOf(store, escrowId);
    await refused(perform(store, ending(escrowId, 'REFUNDED')), 'ESCROW_STATE_CONFLICT');
    assert.deepEqual(await caseOf(store, escrowId), before);
    const ended = await perform(store, ending(escrowId, 'RELEASED'));
    assert.deepEqual(ended, { ...before, review: undefined });
    assert.equal(await transfersOf(store, filingNo), 1);
    assert.deepEqual(await due(store, farMs, farMs), []);
  });

  test('an open instruction ends with its order, and its call gets the result', async (t) => {
    const { store, by } = await openGallery(t, engine);
    for (const [end, expected] of [
      ['REFUNDED', ['DECLINED', 'An operator of the registry ended the order as REFUNDED.']],
      ['RELEASED', ['CONFIRMED', undefined]],
    ] as const) {
      const { escrowId } = await frozen(store, by);
      const { instructionId } = await perform(store, toResolve(by, 'RELEASE', escrowId));
      await recordSent(store, instructionId);
      await perform(store, ending(escrowId, end));
      assert.deepEqual(await statusOf(store, instructionId), expected);
    }
  });

  for (const end of orderEnds) {
    const isPaid = end !== 'CLOSED';
    test(`a later hold of an order that an operator ended as ${end} is ${isPaid ? 'not ' : ''}returned`, async (t) => {
      const { store, by, escrowId } = await openOrder(t, engine, 'FROZEN');
      await perform(store, ending(escrowId, end));
      await stopped(store, escrowId);
      const { instructionId } = workOf(by);
      const named = { escrowId, decision: 'RETURN', instructionId, nowMs: later.atMs } as const;
      const deciding = perform(store, { kind: 'Decide', by: tester, ...named });
      if (isPaid) await refused(deciding, 'ESCROW_STATE_CONFLICT');
      else assert.equal((await deciding).order.pending, 'REFUND');
    });
  }

  test('an order that ends as RELEASED keeps the accepted status', async (t) => {
    const { store, by } = await openGallery(t, engine);
    for (const [end, accepted] of [
      ['REFUNDED', undefined],
      ['RELEASED', oneUnitHeld],
    ] as const) {
      const { escrowId } = await frozen(store, by);
      await stopped(store, escrowId);
      const { instructionId } = workOf(by);
      const named = { escrowId, decision: 'ACCEPT', instructionId, nowMs: later.atMs } as const;
      await perform(store, { kind: 'Decide', by: tester, ...named });
      assert.deepEqual((await perform(store, ending(escrowId, end))).accepted, accepted);
    }
  });

  test('an unknown order cannot be ended', async (t) => {
    const store = await openStore(t, engine);
    await refused(perform(store, ending('ES-2026-0000', 'CLOSED')), 'ESCROW_NOT_FOUND');
  });
}
