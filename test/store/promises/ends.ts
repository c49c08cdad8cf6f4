import assert from 'node:assert/strict';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import { type OrderEnd, orderEnds } from '../../../src/domain/resolution.ts';
import type { Command } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import { oneUnitHeld, refused, time, toResolve, workOf } from './fixtures.ts';
import type { StoreTests } from './tests.ts';

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

/** Orders that an operator ends with evidence. */
export function endPromises({ test }: StoreTests): void {
  for (const [state, end] of endings) {
    test(`a ${state} order can end as ${end}, and its filing can have another order`, async (store) => {
      const { escrowId, filingNo } = await store.orderIn(store.gallery, state);
      if (state === 'FROZEN') await store.perform(toResolve(store.gallery, 'RELEASE', escrowId));
      await store.stopped(escrowId);
      const before = await store.caseOf(escrowId);
      const ended = await store.perform(ending(escrowId, end));
      assert.deepEqual(await store.caseOf(escrowId), ended);
      const { order, open, review, accepted } = ended;
      assert.deepEqual([order.state, order.pending, open, review], [end, undefined, [], undefined]);
      assert.equal(accepted, undefined);
      const change = { state: end, at: later.timestamp, byOperator: true };
      assert.deepEqual(order.history, [...before.order.history, change]);
      assert.equal(await store.transfersOf(filingNo), end === 'RELEASED' ? 1 : 0);
      assert.deepEqual(await store.due(later.atMs, farMs), [escrowId], 'it is looked up once more');
      const { events } = await store.perform({ kind: 'ReadAllEvents', after: undefined });
      assert.deepEqual(
        events.slice(before.order.history.length + 1).map(({ type }) => type),
        [`escrow.${end.toLowerCase()}`, ...(end === 'RELEASED' ? ['provenance.transferred'] : [])],
      );
      await refused(store.perform(ending(escrowId, end)), 'ESCROW_STATE_CONFLICT');
      assert.equal((await store.opened(store.gallery, filingNo)).filingNo, filingNo);
    });
  }

  test('a final order can end only in its state, and only if it is in review', async (store) => {
    const { escrowId, filingNo } = await store.orderIn(store.gallery, 'RELEASED');
    await refused(store.perform(ending(escrowId, 'RELEASED')), 'ESCROW_STATE_CONFLICT');
    await store.stopped(escrowId);
    const before = await store.caseOf(escrowId);
    await refused(store.perform(ending(escrowId, 'REFUNDED')), 'ESCROW_STATE_CONFLICT');
    assert.deepEqual(await store.caseOf(escrowId), before);
    const ended = await store.perform(ending(escrowId, 'RELEASED'));
    assert.deepEqual(ended, { ...before, review: undefined });
    assert.equal(await store.transfersOf(filingNo), 1);
    assert.deepEqual(await store.due(farMs, farMs), []);
  });

  for (const end of orderEnds) {
    const isPaid = end !== 'CLOSED';
    test(`a later hold of an order that an operator ended as ${end} is ${isPaid ? 'not ' : ''}returned`, async (store) => {
      const { escrowId } = await store.orderIn(store.gallery, 'FROZEN');
      await store.perform(ending(escrowId, end));
      await store.stopped(escrowId);
      const { instructionId } = workOf(store.gallery);
      const named = { escrowId, decision: 'RETURN', instructionId, nowMs: later.atMs } as const;
      const deciding = store.perform({ kind: 'Decide', by: tester, ...named });
      if (isPaid) await refused(deciding, 'ESCROW_STATE_CONFLICT');
      else assert.equal((await deciding).order.pending, 'REFUND');
    });
  }

  test('an order that ends as RELEASED keeps the accepted status', async (store) => {
    for (const [end, accepted] of [
      ['REFUNDED', undefined],
      ['RELEASED', oneUnitHeld],
    ] as const) {
      const { escrowId } = await store.frozen(store.gallery);
      await store.stopped(escrowId);
      const { instructionId } = workOf(store.gallery);
      const named = { escrowId, decision: 'ACCEPT', instructionId, nowMs: later.atMs } as const;
      await store.perform({ kind: 'Decide', by: tester, ...named });
      assert.deepEqual((await store.perform(ending(escrowId, end))).accepted, accepted);
    }
  });

  test('an unknown order cannot be ended', async (store) => {
    await refused(store.perform(ending('ES-2026-0000', 'CLOSED')), 'ESCROW_NOT_FOUND');
  });
}
