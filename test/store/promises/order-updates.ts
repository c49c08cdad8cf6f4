import assert from 'node:assert/strict';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import type { OrderUpdate } from '../../../src/store/reconciliation-commands.ts';
import {
  endedAs,
  oneUnitHeld,
  refused,
  settlementOf,
  states,
  time,
  toDecide,
  toResolve,
  workOf,
} from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const later = time('2026-12-02T00:30:00+08:00');

/** An order and the provenance of its filing. */
async function stateOf(store: TestStore, escrowId: string) {
  const found = await store.caseOf(escrowId);
  return {
    found,
    provenance: await store.findProvenance(found.order.filingNo),
  };
}

/** An order in a state, with an open instruction. */
async function withOpenInstruction(store: TestStore, by: CallerRef, state: EscrowState) {
  const order = await store.orderIn(by, state);
  if (state === 'FROZEN') {
    await store.perform(toResolve(by, 'RELEASE', order.escrowId, { owner: by.callerId }));
  } else if (state !== 'UNPAID') {
    const { instructionId } = workOf(by);
    await store.settled(order.escrowId, { prepared: { instructionId, kind: 'REFUND' } });
  }
  return order;
}

/** Updates of orders by provider statuses. */
export function orderUpdatePromises({ test }: StoreTests): void {
  for (const from of states) {
    test(`an update of a ${from} order sets its state, history, instructions and due time`, async (store) => {
      const by = store.gallery;
      const orders = [];
      for (const to of states) orders.push({ to, ...(await withOpenInstruction(store, by, from)) });
      for (const { to, escrowId, filingNo } of orders) {
        const before = await store.caseOf(escrowId);
        const transfers = await store.transfersOf(filingNo);
        const ended = endedAs('DECLINED', before);
        const after = await store.updateOrder(settlementOf(before, { to, ended, lookUpAtMs: 5 }), later);
        const { order, open } = await store.caseOf(escrowId);
        assert.deepEqual(after, await store.caseOf(escrowId));
        const change = to === from ? [] : [{ state: to, at: later.timestamp }];
        assert.deepEqual([order.state, order.history, open], [to, [...before.order.history, ...change], []]);
        const isReleased = to === 'RELEASED' && from !== 'RELEASED';
        assert.equal(await store.transfersOf(filingNo), transfers + (isReleased ? 1 : 0));
        assert.ok((await store.due(5, 10)).includes(escrowId));
      }
    });

    test(`an update from another state does not change a ${from} order`, async (store) => {
      const by = store.gallery;
      const { escrowId } = await withOpenInstruction(store, by, from);
      const before = await stateOf(store, escrowId);
      for (const other of states.filter((state) => state !== from))
        for (const to of states) {
          const update = settlementOf(before.found, {
            ...{ from: other, to, ended: endedAs('CONFIRMED', before.found), reference: 'theirs' },
            ...{ review: { why: 'why', found: oneUnitHeld }, lookUpAtMs: 5 },
          });
          assert.equal(await store.updateOrder(update, later), undefined);
        }
      assert.deepEqual(await stateOf(store, escrowId), before);
      assert.deepEqual(await store.due(5, Number.MAX_SAFE_INTEGER), []);
    });
  }

  test('an update that ends an instruction that is not open is not made', async (store) => {
    const by = store.gallery;
    const { escrowId, holdId } = await store.orderIn(by, 'FROZEN');
    const another = await store.opened(by);
    const release = await store.perform(toResolve(by, 'RELEASE', escrowId));
    const before = await stateOf(store, escrowId);
    const confirmed = (instructionId: string) => ({ instructionId, status: 'CONFIRMED' }) as const;
    const prepared = { instructionId: workOf(by).instructionId, kind: 'REFUND' } as const;
    for (const ended of [
      [confirmed(holdId)],
      [confirmed(release.instructionId), confirmed(holdId)],
      [confirmed(release.instructionId), confirmed(another.holdId)],
      [confirmed(release.instructionId), confirmed('no instruction')],
    ]) {
      const update = settlementOf(before.found, { to: 'RELEASED', ended, prepared, reference: 'theirs' });
      assert.equal(await store.updateOrder(update, later), undefined);
      assert.deepEqual(await stateOf(store, escrowId), before);
    }
    assert.equal((await store.findInstruction(another.holdId))?.status, 'PREPARED');
    assert.equal(await store.findInstruction(prepared.instructionId), undefined);
  });

  test('an update ends instructions and prepares one', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    await store.recordSent(holdId);
    const { instructionId: cancelId } = workOf(store.gallery);
    await store.settled(escrowId, { ended: [], prepared: { instructionId: cancelId, kind: 'CANCEL' } });
    assert.partialDeepStrictEqual((await store.caseOf(escrowId)).open, [
      { instructionId: holdId, kind: 'FREEZE', status: 'SENT' },
      { instructionId: cancelId, kind: 'CANCEL', status: 'PREPARED' },
    ]);
    const { instructionId: refundId } = workOf(store.gallery);
    const ended = [
      { instructionId: holdId, status: 'CONFIRMED' },
      { instructionId: cancelId, status: 'DECLINED' },
    ] as const;
    await store.settled(escrowId, {
      to: 'CLOSED',
      ended,
      prepared: { instructionId: refundId, kind: 'REFUND' },
    });
    const statuses = await Promise.all(
      [holdId, cancelId, refundId].map((instructionId) => store.findInstruction(instructionId)),
    );
    assert.deepEqual(
      statuses.map((operation) => [operation?.kind, operation?.status, operation?.order.state]),
      [
        ['FREEZE', 'CONFIRMED', 'CLOSED'],
        ['CANCEL', 'DECLINED', 'CLOSED'],
        ['REFUND', 'PREPARED', 'CLOSED'],
      ],
    );
    assert.equal((await store.caseOf(escrowId)).holdId, holdId);
  });

  test('an order that was cancelled during the provider request does not become FROZEN', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'UNPAID');
    const requested = await store.caseOf(escrowId);
    await store.perform(toResolve(store.gallery, 'REFUND', escrowId));
    const before = await stateOf(store, escrowId);
    const held = settlementOf(requested, { to: 'FROZEN', ended: endedAs('CONFIRMED', requested) });
    assert.equal(await store.updateOrder(held, later), undefined);
    assert.deepEqual(await stateOf(store, escrowId), before);
    const returned = settlementOf(before.found, {
      to: 'CLOSED',
      ended: endedAs('CONFIRMED', before.found),
    });
    const closed = await store.updateOrder(returned, later);
    assert.deepEqual([closed?.order.state, closed?.open], ['CLOSED', []]);
  });

  test("the provider's reference is kept until the provider reports another one", async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'UNPAID');
    for (const [given, kept] of [
      [undefined, undefined],
      ['one', 'one'],
      [undefined, 'one'],
      ['two', 'two'],
    ]) {
      await store.settled(escrowId, { ended: [], reference: given });
      assert.equal((await store.caseOf(escrowId)).reference, kept);
    }
    await store.settled(escrowId, { to: 'FROZEN' });
    assert.equal((await store.caseOf(escrowId)).reference, 'two');
  });

  test('failed attempts are counted until the provider responds', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'UNPAID');
    for (let times = 0; times < 3; times += 1) await store.unanswered(escrowId, 7);
    await store.settled(escrowId, { ended: [], resetsAttempts: false });
    assert.equal((await store.caseOf(escrowId)).failedAttempts, 3);
    await store.settled(escrowId, { ended: [], resetsAttempts: true });
    assert.equal((await store.caseOf(escrowId)).failedAttempts, 0);
  });

  test('a notification during a provider request makes the order due again', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const { notificationCount } = await store.caseOf(escrowId);
    await store.notify('event', { holdId }, later.atMs - 1);
    await store.settled(escrowId, { ended: [], notificationCount, lookUpAtMs: undefined });
    assert.deepEqual(await store.due(later.atMs, Number.MAX_SAFE_INTEGER), [escrowId]);
    await store.settled(escrowId, { ended: [], lookUpAtMs: undefined });
    assert.deepEqual(await store.due(Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), []);
  });

  test('a failed attempt does not postpone a notification that came meanwhile', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const { notificationCount } = await store.caseOf(escrowId);
    await store.notify('event', { holdId }, later.atMs);
    await store.unanswered(escrowId, later.atMs + 300_000, notificationCount);
    assert.deepEqual(await store.due(later.atMs, Number.MAX_SAFE_INTEGER), [escrowId]);
    await store.unanswered(escrowId, later.atMs + 300_000, notificationCount + 1);
    assert.deepEqual(await store.due(later.atMs, Number.MAX_SAFE_INTEGER), []);
  });

  test('an order in review is not due until an operator decides', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const review = { why: 'It differs.', found: oneUnitHeld };
    await store.settled(escrowId, { ended: [], review, lookUpAtMs: 1 });
    const before = await store.caseOf(escrowId);
    assert.equal(before.review, 'It differs.');
    assert.equal(before.open.length, 1);
    assert.equal(await store.updateOrder(settlementOf(before, { to: 'FROZEN' }), later), undefined);
    for (const attempt of [
      () => store.notify('event', { holdId }, 1),
      () => store.perform({ kind: 'ResumeOpen', nowMs: 1 }),
      async () =>
        assert.equal(
          await store.perform({
            ...{ kind: 'RecordSent', instructionId: holdId, status: 'PREPARED' },
            ...{ expectedLookUpAtMs: undefined, lookUpAtMs: 1 },
          }),
          false,
        ),
      () => store.unanswered(escrowId, 1),
    ]) {
      await attempt();
      assert.deepEqual(await store.due(1_000, 1_000), []);
    }
    const { order, review: kept } = await store.caseOf(escrowId);
    assert.deepEqual([order, kept], [before.order, before.review]);
    await store.perform(toDecide(escrowId, 'LOOK_AGAIN'));
    await store.settled(escrowId, { ended: [], lookUpAtMs: 1 });
    assert.equal((await store.caseOf(escrowId)).review, undefined);
    assert.deepEqual(await store.due(1_000, 2_000), [escrowId]);
  });

  test('an update of an unknown order is rejected', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'UNPAID');
    const nowhere: OrderUpdate = { ...settlementOf(await store.caseOf(escrowId)), escrowId: 'ES-2026-' };
    await refused(store.updateOrder(nowhere), 'ESCROW_NOT_FOUND');
  });
}
