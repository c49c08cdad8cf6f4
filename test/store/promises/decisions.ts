import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import type { Decision } from '../../../src/domain/resolution.ts';
import type { CaseSelection } from '../../../src/store/reconciliation-commands.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  addPlatform,
  allPages,
  caseOf,
  due,
  firstPage,
  frozen,
  inNeed,
  oneUnitHeld,
  opened,
  openGallery,
  openOrder,
  openPair,
  orderIn,
  refused,
  type StoreEngine,
  settled,
  states,
  stopped,
  toDecide,
  toResolve,
  workOf,
} from './fixtures.ts';

const decisions: readonly Decision[] = ['LOOK_AGAIN', 'ACCEPT', 'RETURN'];

/** Decisions, and the instruction that each prepares. `domain/resolution.ts` has the rules of all states. */
const effects: readonly (readonly [EscrowState, Decision, 'CANCEL' | 'REFUND' | undefined])[] = [
  ['UNPAID', 'RETURN', 'CANCEL'],
  ['FROZEN', 'RETURN', 'REFUND'],
  ['CLOSED', 'RETURN', 'REFUND'],
  ['FROZEN', 'ACCEPT', undefined],
  ['UNPAID', 'LOOK_AGAIN', undefined],
];

/** The ids of the cases that a selection lists, page by page. */
const caseIds = async (store: Store, selection: CaseSelection, size: number) =>
  (await allPages((page) => perform(store, { kind: 'ListCases', selection, page }), size)).map((page) =>
    page.map(({ order }) => order.escrowId),
  );

/** Decisions of operators. */
export function decisionPromises(engine: StoreEngine): void {
  for (const [state, decision, kind] of effects) {
    test(`${decision} of a ${state} order prepares ${kind ?? 'nothing'}`, async (t) => {
      const { store, by, escrowId } = await openOrder(t, engine, state);
      await stopped(store, escrowId);
      const before = await caseOf(store, escrowId);
      const { instructionId } = workOf(by);
      const decided = await perform(store, toDecide(escrowId, decision, { instructionId, nowMs: 5_000 }));
      assert.deepEqual(await caseOf(store, escrowId), decided);
      const { open, ...rest } = decided;
      const { open: openBefore, ...restBefore } = before;
      assert.deepEqual(rest, {
        ...restBefore,
        order: kind ? { ...before.order, pending: 'REFUND' } : before.order,
        review: undefined,
        accepted: decision === 'ACCEPT' ? oneUnitHeld : undefined,
        notificationCount: before.notificationCount + 1,
      });
      const prepared = kind ? [{ instructionId, kind, status: 'PREPARED' }] : [];
      assert.equal(open.length, openBefore.length + prepared.length);
      assert.partialDeepStrictEqual(open, [...openBefore, ...prepared]);
      assert.deepEqual(await due(store, 4_999, 9_000), []);
      assert.deepEqual(await due(store, 5_000, 9_000), [escrowId]);
    });
  }

  test('a decision that is a conflict changes nothing', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'RELEASED');
    await stopped(store, escrowId);
    const before = await caseOf(store, escrowId);
    await refused(perform(store, toDecide(escrowId, 'RETURN', { nowMs: 5_000 })), 'ESCROW_STATE_CONFLICT');
    assert.deepEqual(await caseOf(store, escrowId), before);
    assert.deepEqual(await due(store, 5_000, 9_000), []);
  });

  test('an order without a review cannot be decided', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'FROZEN');
    const before = await caseOf(store, escrowId);
    for (const decision of decisions) {
      const decide = (id: string) => perform(store, toDecide(id, decision, { nowMs: 5_000 }));
      await refused(decide(escrowId), 'ESCROW_STATE_CONFLICT');
      await refused(decide('ES-2026-'), 'ESCROW_NOT_FOUND');
    }
    assert.deepEqual(await caseOf(store, escrowId), before);
    assert.deepEqual(await due(store, 5_000, 9_000), []);
  });

  test('a RELEASE without a response stays open beside the REFUND of a decision', async (t) => {
    const { store, by, escrowId } = await openOrder(t, engine, 'FROZEN');
    const release = await perform(store, toResolve(by, 'RELEASE', escrowId));
    await stopped(store, escrowId);
    const { instructionId } = workOf(by);
    const { open } = await perform(store, toDecide(escrowId, 'RETURN', { instructionId }));
    assert.deepEqual(
      open.map((instruction) => [instruction.kind, instruction.instructionId]),
      [
        ['RELEASE', release.instructionId],
        ['REFUND', instructionId],
      ],
    );
    await refused(perform(store, toResolve(by, 'RELEASE', escrowId)), 'ESCROW_STATE_CONFLICT');
    const joined = await perform(store, toResolve(by, 'REFUND', escrowId));
    assert.equal(joined.instructionId, instructionId);
  });

  test('a RETURN continues the open REFUND or CANCEL, and prepares no second one', async (t) => {
    const { store, by } = await openGallery(t, engine);
    for (const { escrowId } of [await frozen(store, by), await opened(store, by)]) {
      await perform(store, toResolve(by, 'REFUND', escrowId));
      await stopped(store, escrowId);
      const { open } = await caseOf(store, escrowId);
      assert.deepEqual((await perform(store, toDecide(escrowId, 'RETURN'))).open, open);
    }
  });

  test('a hold of a CLOSED order can be accepted once the provider declined to return it', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'CLOSED');
    await stopped(store, escrowId);
    const decide = (decision: Decision, instructionId: string) =>
      perform(store, toDecide(escrowId, decision, { instructionId }));
    await refused(decide('ACCEPT', 'no'), 'ESCROW_STATE_CONFLICT');
    const { open } = await decide('RETURN', 'back');
    await settled(store, escrowId, { ended: open.map(declined) });
    await stopped(store, escrowId);
    assert.equal((await decide('ACCEPT', 'yes')).review, undefined);
  });

  test('without a provider status only the hold of a FROZEN order can be returned', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const review = { why: 'It is silent.', found: undefined };
    const back = { kind: 'Decide', by: tester, decision: 'RETURN', nowMs: 1 } as const;
    const [held, unpaid] = [await frozen(store, by), await opened(store, by)];
    for (const { escrowId } of [held, unpaid]) await settled(store, escrowId, { review });
    await refused(
      perform(store, { ...back, escrowId: unpaid.escrowId, instructionId: 'no' }),
      'ESCROW_STATE_CONFLICT',
    );
    const { open } = await perform(store, { ...back, escrowId: held.escrowId, instructionId: 'back' });
    assert.deepEqual(
      open.map(({ kind, instructionId }) => [kind, instructionId]),
      [['REFUND', 'back']],
    );
  });

  test('a hold that was returned after its order closed is not returned again', async (t) => {
    const { store, by, escrowId } = await openOrder(t, engine, 'CLOSED');
    await settled(store, escrowId, { prepared: { instructionId: workOf(by).instructionId, kind: 'REFUND' } });
    await settled(store, escrowId, {});
    await stopped(store, escrowId);
    const again = perform(store, toDecide(escrowId, 'RETURN'));
    await refused(again, 'ESCROW_STATE_CONFLICT');
  });

  test('the accepted status counts until the next review', async (t) => {
    const { store, escrowId } = await openOrder(t, engine);
    const acceptedAfter = async (decision: Decision) => {
      await stopped(store, escrowId);
      assert.equal((await caseOf(store, escrowId)).accepted, undefined);
      await perform(store, toDecide(escrowId, decision));
      return (await caseOf(store, escrowId)).accepted;
    };
    assert.deepEqual(await acceptedAfter('ACCEPT'), oneUnitHeld);
    assert.equal(await acceptedAfter('LOOK_AGAIN'), undefined);
    assert.deepEqual(await acceptedAfter('ACCEPT'), oneUnitHeld);
    await settled(store, escrowId, { to: 'FROZEN' });
    assert.deepEqual((await caseOf(store, escrowId)).accepted, oneUnitHeld, 'an update leaves it as it is');
  });

  test('a status without an amount can be accepted', async (t) => {
    const { store, escrowId } = await openOrder(t, engine, 'FROZEN');
    await settled(store, escrowId, { review: { why: 'It is gone.', found: { status: 'ABSENT' } } });
    const { accepted } = await perform(store, toDecide(escrowId, 'ACCEPT'));
    assert.deepEqual(accepted, { status: 'ABSENT', amount: undefined, currency: undefined });
  });

  test('the serving process sees a decision of another process', async (t) => {
    const [serving, command] = await openPair(t, engine);
    await serving.beginServing();
    const by = await addPlatform(serving, 'gallery');
    const { escrowId } = await frozen(serving, by);
    await stopped(serving, escrowId);
    await perform(command, toDecide(escrowId, 'RETURN', { nowMs: 1_000 }));
    assert.deepEqual(await due(serving, 1_000, 9_000), [escrowId]);
    assert.partialDeepStrictEqual((await caseOf(serving, escrowId)).open, [{ kind: 'REFUND' }]);
  });

  test('cases are listed newest first, by state and by need of a review', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const all: { escrowId: string; state: EscrowState; needsReview: boolean }[] = [];
    for (const needsReview of [true, false, true]) {
      for (const state of states) {
        const { escrowId } = await orderIn(store, by, state);
        if (needsReview) await stopped(store, escrowId, `why ${escrowId}`);
        all.unshift({ escrowId, state, needsReview });
      }
    }
    for (const state of [undefined, ...states]) {
      for (const needsReview of [true, false]) {
        const expected = all
          .filter((each) => state === undefined || each.state === state)
          .filter((each) => !needsReview || each.needsReview)
          .map(({ escrowId }) => escrowId);
        for (const size of [1, 2, 5, 100]) {
          const pages = await caseIds(store, { state, needsReview }, size);
          assert.deepEqual(pages.flat(), expected, `${state} ${needsReview}`);
          assert.equal(pages.length, Math.ceil(expected.length / size));
        }
      }
    }
    const { items } = await perform(store, {
      kind: 'ListCases',
      selection: inNeed,
      page: firstPage(),
    });
    for (const item of items) {
      assert.deepEqual(item, await caseOf(store, item.order.escrowId));
      assert.equal(item.review, `why ${item.order.escrowId}`);
    }
  });
}

const declined = ({ instructionId }: { readonly instructionId: string }) =>
  ({ instructionId, status: 'DECLINED' }) as const;
