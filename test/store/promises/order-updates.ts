import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import type { OrderUpdate } from '../../../src/store/reconciliation-commands.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import {
  addPlatform,
  caseOf,
  due,
  endedAs,
  findInstruction,
  findProvenance,
  frozen,
  notify,
  oneUnitHeld,
  opened,
  openGallery,
  openOrder,
  openPair,
  orderIn,
  recordSent,
  refused,
  type StoreEngine,
  settled,
  settlementOf,
  states,
  time,
  toDecide,
  toResolve,
  transfersOf,
  unanswered,
  updateOrder,
  workOf,
} from './fixtures.ts';

const later = time('2026-12-02T00:30:00+08:00');

/** An order and the provenance of its filing. */
async function stateOf(store: Store, escrowId: string) {
  const found = await caseOf(store, escrowId);
  return {
    found,
    provenance: await findProvenance(store, found.order.filingNo),
  };
}

/** An order in a state, with an open instruction. */
async function withOpenInstruction(store: Store, by: CallerRef, state: EscrowState) {
  const order = await orderIn(store, by, state);
  if (state === 'FROZEN') {
    await perform(store, toResolve(by, 'RELEASE', order.escrowId, { owner: by.callerId }));
  } else if (state !== 'UNPAID') {
    const { instructionId } = workOf(by);
    await settled(store, order.escrowId, { prepared: { instructionId, kind: 'REFUND' } });
  }
  return order;
}

/** Updates of orders by provider statuses. */
export function orderUpdatePromises(engine: StoreEngine): void {
  for (const from of states) {
    test(`an update of a ${from} order sets its state, history, instructions and due time`, async (t) => {
      const { store, by } = await openGallery(t, engine);
      const orders = [];
      for (const to of states) orders.push({ to, ...(await withOpenInstruction(store, by, from)) });
      for (const { to, escrowId, filingNo } of orders) {
        const before = await caseOf(store, escrowId);
        const transfers = await transfersOf(store, filingNo);
        const ended = endedAs('DECLINED', before);
        const after = await updateOrder(store, settlementOf(before, { to, ended, lookUpAtMs: 5 }), later);
        const { order, open } = await caseOf(store, escrowId);
        assert.deepEqual(after, await caseOf(store, escrowId));
        const change = to === from ? [] : [{ state: to, at: later.timestamp }];
        assert.deepEqual([order.state, order.history, open], [to, [...before.order.history, ...change], []]);
        const isReleased = to === 'RELEASED' && from !== 'RELEASED';
        assert.equal(await transfersOf(store, filingNo), transfers + (isReleased ? 1 : 0));
        assert.ok((await due(store, 5, 10)).includes(escrowId));
      }
    });

    test(`an update from another state does not change a ${from} order`, async (t) => {
      const { store, by } = await openGallery(t, engine);
      const { escrowId } = await withOpenInstruction(store, by, from);
      const before = await stateOf(store, escrowId);
      for (const other of states.filter((state) => state !== from))
        for (const to of states) {
          const update = settlementOf(before.found, {
            ...{ from: other, to, ended: endedAs('CONFIRMED', before.found), reference: 'theirs' },
            ...{ review: { why: 'why', found: oneUnitHeld }, lookUpAtMs: 5 },
          });
          assert.equal(await updateOrder(store, update, later), undefined);
        }
      assert.deepEqual(await stateOf(store, escrowId), before);
      assert.deepEqual(await due(store, 5, Number.MAX_SAFE_INTEGER), []);
    });
  }

  test('an update that ends an instruction that is not open is not made', async (t) => {
    const { store, by, escrowId, holdId } = await openOrder(t, engine, 'FROZEN');
    const another = await opened(store, by);
    const release = await perform(store, toResolve(by, 'RELEASE', escrowId));
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
      assert.equal(await updateOrder(store, update, later), undefined);
      assert.deepEqual(await stateOf(store, escrowId), before);
    }
    assert.equal((await findInstruction(store, another.holdId))?.status, 'PREPARED');
    assert.equal(await findInstruction(store, prepared.instructionId), undefined);
  });

  test('one of the updates of two open stores is made', async (t) => {
    const [one, other] = await openPair(t, engine);
    const by = await addPlatform(one, 'gallery');
    const { filingNo, escrowId } = await frozen(one, by);
    await perform(one, toResolve(by, 'RELEASE', escrowId));
    const found = await caseOf(other, escrowId);
    const update = settlementOf(found, { to: 'RELEASED', ended: endedAs('CONFIRMED', found) });
    assert.ok(await updateOrder(one, update));
    assert.equal(await updateOrder(other, update), undefined);
    assert.equal(await transfersOf(other, filingNo), 1);
    assert.equal((await caseOf(other, escrowId)).order.state, 'RELEASED');
  });

  test('an update ends instructions and prepares one', async (t) => {
    const { store, by, escrowId, holdId } = await openOrder(t, engine);
    await recordSent(store, holdId);
    const { instructionId: cancelId } = workOf(by);
    await settled(store, escrowId, { ended: [], prepared: { instructionId: cancelId, kind: 'CANCEL' } });
    assert.partialDeepStrictEqual((await caseOf(store, escrowId)).open, [
      { instructionId: holdId, kind: 'FREEZE', status: 'SENT' },
      { instructionId: cancelId, kind: 'CANCEL', status: 'PREPARED' },
    ]);
    const { instructionId: refundId } = workOf(by);
    const ended = [
      { instructionId: holdId, status: 'CONFIRMED' },
      { instructionId: cancelId, status: 'DECLINED' },
    ] as const;
    await settled(store, escrowId, {
      to: 'CLOSED',
      ended,
      prepared: { instructionId: refundId, kind: 'REFUND' },
    });
    const statuses = await Promise.all(
      [holdId, cancelId, refundId].map((instructionId) => findInstruction(store, instructionId)),
    );
    assert.deepEqual(
      statuses.map((operation) => [operation?.kind, operation?.status, operation?.order.state]),
      [
        ['FREEZE', 'CONFIRMED', 'CLOSED'],
        ['CANCEL', 'DECLINED', 'CLOSED'],
        ['REFUND', 'PREPARED', 'CLOSED'],
      ],
    );
    assert.equal((await caseOf(store, escrowId)).holdId, holdId);
  });

  test('an order that was cancelled during the provider request does not become FROZEN', async (t) => {
    const { store, by, escrowId } = await openOrder(t, engine);
    const requested = await caseOf(store, escrowId);
    await perform(store, toResolve(by, 'REFUND', escrowId));
    const before = await stateOf(store, escrowId);
    const held = settlementOf(requested, { to: 'FROZEN', ended: endedAs('CONFIRMED', requested) });
    assert.equal(await updateOrder(store, held, later), undefined);
    assert.deepEqual(await stateOf(store, escrowId), before);
    const returned = settlementOf(before.found, { to: 'CLOSED', ended: endedAs('CONFIRMED', before.found) });
    const closed = await updateOrder(store, returned, later);
    assert.deepEqual([closed?.order.state, closed?.open], ['CLOSED', []]);
  });

  test("the provider's reference is kept until the provider reports another one", async (t) => {
    const { store, escrowId } = await openOrder(t, engine);
    for (const [given, kept] of [
      [undefined, undefined],
      ['one', 'one'],
      [undefined, 'one'],
      ['two', 'two'],
    ]) {
      await settled(store, escrowId, { ended: [], reference: given });
      assert.equal((await caseOf(store, escrowId)).reference, kept);
    }
    await settled(store, escrowId, { to: 'FROZEN' });
    assert.equal((await caseOf(store, escrowId)).reference, 'two');
  });

  test('failed attempts are counted until the provider responds', async (t) => {
    const { store, escrowId } = await openOrder(t, engine);
    for (let times = 0; times < 3; times += 1) await unanswered(store, escrowId, 7);
    await settled(store, escrowId, { ended: [], resetsAttempts: false });
    assert.equal((await caseOf(store, escrowId)).failedAttempts, 3);
    await settled(store, escrowId, { ended: [], resetsAttempts: true });
    assert.equal((await caseOf(store, escrowId)).failedAttempts, 0);
  });

  test('a notification during a provider request makes the order due again', async (t) => {
    const { store, escrowId, holdId } = await openOrder(t, engine);
    const { notificationCount } = await caseOf(store, escrowId);
    await notify(store, 'event', { holdId }, later.atMs - 1);
    await settled(store, escrowId, { ended: [], notificationCount, lookUpAtMs: undefined });
    assert.deepEqual(await due(store, later.atMs, Number.MAX_SAFE_INTEGER), [escrowId]);
    await settled(store, escrowId, { ended: [], lookUpAtMs: undefined });
    assert.deepEqual(await due(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), []);
  });

  test('a failed attempt does not postpone a notification that came meanwhile', async (t) => {
    const { store, escrowId, holdId } = await openOrder(t, engine);
    const { notificationCount } = await caseOf(store, escrowId);
    await notify(store, 'event', { holdId }, later.atMs);
    await perform(store, {
      kind: 'RecordUnanswered',
      escrowId,
      lookUpAtMs: later.atMs + 300_000,
      notificationCount,
    });
    assert.deepEqual(await due(store, later.atMs, Number.MAX_SAFE_INTEGER), [escrowId]);
    await perform(store, {
      kind: 'RecordUnanswered',
      escrowId,
      lookUpAtMs: later.atMs + 300_000,
      notificationCount: notificationCount + 1,
    });
    assert.deepEqual(await due(store, later.atMs, Number.MAX_SAFE_INTEGER), []);
  });

  test('an order in review is not due until an operator decides', async (t) => {
    const { store, escrowId, holdId } = await openOrder(t, engine);
    const review = { why: 'It differs.', found: oneUnitHeld };
    await settled(store, escrowId, { ended: [], review, lookUpAtMs: 1 });
    const before = await caseOf(store, escrowId);
    assert.equal(before.review, 'It differs.');
    assert.equal(before.open.length, 1);
    assert.equal(await updateOrder(store, settlementOf(before, { to: 'FROZEN' }), later), undefined);
    for (const attempt of [
      () => notify(store, 'event', { holdId }, 1),
      () => perform(store, { kind: 'ResumeOpen', nowMs: 1 }),
      () => recordSent(store, holdId),
      () => unanswered(store, escrowId, 1),
    ]) {
      await attempt();
      assert.deepEqual(await due(store, 1_000, 1_000), []);
    }
    const { order, review: kept } = await caseOf(store, escrowId);
    assert.deepEqual([order, kept], [before.order, before.review]);
    await perform(store, toDecide(escrowId, 'LOOK_AGAIN'));
    await settled(store, escrowId, { ended: [], lookUpAtMs: 1 });
    assert.equal((await caseOf(store, escrowId)).review, undefined);
    assert.deepEqual(await due(store, 1_000, 2_000), [escrowId]);
  });

  test('an update of an unknown order is rejected', async (t) => {
    const { store, escrowId } = await openOrder(t, engine);
    const nowhere: OrderUpdate = { ...settlementOf(await caseOf(store, escrowId)), escrowId: 'ES-2026-' };
    await refused(updateOrder(store, nowhere), 'ESCROW_NOT_FOUND');
  });
}
