import assert from 'node:assert/strict';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import { type Decision, type OrderEnd, orderEnds } from '../../../src/domain/resolution.ts';
import type { Command } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  assertListed,
  firstPage,
  inNeed,
  oneUnitHeld,
  refused,
  states,
  time,
  toDecide,
  toResolve,
  workOf,
} from './fixtures.ts';
import type { StoreTests } from './tests.ts';

/** Decisions, and the instruction that each prepares. `domain/resolution.ts` has the rules of all states. */
const effects: readonly (readonly [EscrowState, Decision, 'CANCEL' | 'REFUND' | undefined])[] = [
  ['UNPAID', 'RETURN', 'CANCEL'],
  ['FROZEN', 'RETURN', 'REFUND'],
  ['CLOSED', 'RETURN', 'REFUND'],
  ['FROZEN', 'ACCEPT', undefined],
  ['UNPAID', 'LOOK_AGAIN', undefined],
];

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

/** Decisions of operators, and orders that they end with evidence. */
export function decisionPromises({ test }: StoreTests): void {
  for (const [state, decision, kind] of effects) {
    test(`${decision} of a ${state} order prepares ${kind ?? 'nothing'}`, async (store) => {
      const { escrowId } = await store.orderIn(store.gallery, state);
      await store.stopped(escrowId);
      const before = await store.caseOf(escrowId);
      const { instructionId } = workOf(store.gallery);
      const decided = await store.perform(toDecide(escrowId, decision, { instructionId, nowMs: 5_000 }));
      assert.deepEqual(await store.caseOf(escrowId), decided);
      const { open, ...rest } = decided;
      const { open: openBefore, ...restBefore } = before;
      assert.deepEqual(rest, {
        ...restBefore,
        order: kind ? { ...before.order, pending: 'REFUND' } : before.order,
        review: undefined,
        accepted: decision === 'ACCEPT' ? oneUnitHeld : undefined,
        notificationCount: before.notificationCount + 1,
        lookUpAtMs: 5_000,
      });
      const prepared = kind ? [{ instructionId, kind, status: 'PREPARED' }] : [];
      assert.equal(open.length, openBefore.length + prepared.length);
      assert.partialDeepStrictEqual(open, [...openBefore, ...prepared]);
      assert.deepEqual(await store.due(4_999, 9_000), []);
      assert.deepEqual(await store.due(5_000, 9_000), [escrowId]);
    });
  }

  test('a decision that is a conflict changes nothing', async (store) => {
    const [idle, released] = [
      await store.orderIn(store.gallery, 'FROZEN'),
      await store.orderIn(store.gallery, 'RELEASED'),
    ];
    await store.stopped(released.escrowId);
    for (const { escrowId } of [idle, released]) {
      const before = await store.caseOf(escrowId);
      await refused(store.perform(toDecide(escrowId, 'RETURN', { nowMs: 5_000 })), 'ESCROW_STATE_CONFLICT');
      assert.deepEqual(await store.caseOf(escrowId), before);
    }
    assert.deepEqual(await store.due(5_000, 9_000), []);
    await refused(store.perform(toDecide('ES-2026-', 'RETURN')), 'ESCROW_NOT_FOUND');
  });

  test('a RELEASE without a response stays open beside the REFUND of a decision', async (store) => {
    const by = store.gallery;
    const { escrowId } = await store.orderIn(by, 'FROZEN');
    const release = await store.perform(toResolve(by, 'RELEASE', escrowId));
    await store.stopped(escrowId);
    const { instructionId } = workOf(by);
    const { open } = await store.perform(toDecide(escrowId, 'RETURN', { instructionId }));
    assert.deepEqual(
      open.map((instruction) => [instruction.kind, instruction.instructionId]),
      [
        ['RELEASE', release.instructionId],
        ['REFUND', instructionId],
      ],
    );
    await refused(store.perform(toResolve(by, 'RELEASE', escrowId)), 'ESCROW_STATE_CONFLICT');
    const joined = await store.perform(toResolve(by, 'REFUND', escrowId));
    assert.equal(joined.instructionId, instructionId);
  });

  test('a hold of a CLOSED order can be accepted once the provider declined to return it', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'CLOSED');
    await store.stopped(escrowId);
    const decide = (decision: Decision, instructionId: string) =>
      store.perform(toDecide(escrowId, decision, { instructionId }));
    await refused(decide('ACCEPT', 'no'), 'ESCROW_STATE_CONFLICT');
    const { open } = await decide('RETURN', 'back');
    await store.settled(escrowId, { ended: open.map(declined) });
    await store.stopped(escrowId);
    assert.equal((await decide('ACCEPT', 'yes')).review, undefined);
  });

  test('a hold that was returned after its order closed is not returned again', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'CLOSED');
    await store.settled(escrowId, {
      prepared: { instructionId: workOf(store.gallery).instructionId, kind: 'REFUND' },
    });
    await store.settled(escrowId, {});
    await store.stopped(escrowId);
    const again = store.perform(toDecide(escrowId, 'RETURN'));
    await refused(again, 'ESCROW_STATE_CONFLICT');
  });

  test('the accepted status counts until the next review', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'UNPAID');
    const acceptedAfter = async (decision: Decision) => {
      await store.stopped(escrowId);
      assert.equal((await store.caseOf(escrowId)).accepted, undefined);
      await store.perform(toDecide(escrowId, decision));
      return (await store.caseOf(escrowId)).accepted;
    };
    assert.deepEqual(await acceptedAfter('ACCEPT'), oneUnitHeld);
    assert.equal(await acceptedAfter('LOOK_AGAIN'), undefined);
    assert.deepEqual(await acceptedAfter('ACCEPT'), oneUnitHeld);
    await store.settled(escrowId, { to: 'FROZEN' });
    assert.deepEqual((await store.caseOf(escrowId)).accepted, oneUnitHeld, 'an update leaves it as it is');
  });

  test('a status without an amount can be accepted', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'FROZEN');
    await store.settled(escrowId, { review: { why: 'It is gone.', found: { status: 'ABSENT' } } });
    const { accepted } = await store.perform(toDecide(escrowId, 'ACCEPT'));
    assert.deepEqual(accepted, { status: 'ABSENT', amount: undefined, currency: undefined });
  });

  test('cases are listed newest first, by state and by need of a review', async (store) => {
    const all: { escrowId: string; state: EscrowState; needsReview: boolean }[] = [];
    for (const needsReview of [true, false, true]) {
      for (const state of states) {
        const { escrowId } = await store.orderIn(store.gallery, state);
        if (needsReview) await store.stopped(escrowId, `why ${escrowId}`);
        all.unshift({ escrowId, state, needsReview });
      }
    }
    for (const state of [undefined, ...states]) {
      for (const needsReview of [true, false]) {
        const expected = all
          .filter((each) => state === undefined || each.state === state)
          .filter((each) => !needsReview || each.needsReview)
          .map(({ escrowId }) => escrowId);
        await assertListed(
          (page) => store.perform({ kind: 'ListCases', selection: { state, needsReview }, page }),
          ({ order }) => order.escrowId,
          expected,
        );
      }
    }
    const { items } = await store.perform({ kind: 'ListCases', selection: inNeed, page: firstPage() });
    for (const item of items) {
      assert.deepEqual(item, await store.caseOf(item.order.escrowId));
      assert.equal(item.review, `why ${item.order.escrowId}`);
    }
  });

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

const declined = ({ instructionId }: { readonly instructionId: string }) =>
  ({ instructionId, status: 'DECLINED' }) as const;
