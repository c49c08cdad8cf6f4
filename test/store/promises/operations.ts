import assert from 'node:assert/strict';
import type { CallerRef } from '../../../src/store/filing-commands.ts';
import type { Command } from '../../../src/store/store.ts';
import { tester } from '../../support/audit-log.ts';
import {
  endedAs,
  noon,
  refused,
  settlementOf,
  states,
  toListDue,
  toOpen,
  toResolve,
  underKey,
  workOf,
} from './fixtures.ts';
import type { StoreTests, TestStore } from './tests.ts';

const kinds = ['RELEASE', 'REFUND'] as const;

const otherThan = (kind: (typeof kinds)[number]) => (kind === 'RELEASE' ? 'REFUND' : 'RELEASE');

/** The outcome of a replay with this result. */
const replayOf = (result: object) => ({ result, isReplay: true });

/** Whether an order is due at a time, and not before it. */
async function assertDueAt(store: TestStore, escrowId: string, atMs: number): Promise<void> {
  const farMs = Number.MAX_SAFE_INTEGER;
  assert.equal((await store.due(atMs - 1, farMs)).includes(escrowId), false, 'too early');
  assert.equal((await store.due(atMs, farMs)).includes(escrowId), true, 'too late');
}

/** The RELEASED orders of all shares, each share by itself. */
async function releasedOf(store: TestStore, shares: number, sinceMs: number): Promise<(readonly string[])[]> {
  const all = Array.from({ length: shares }, (_, share) => share);
  return Promise.all(all.map((share) => store.perform({ kind: 'ListReleased', share, shares, sinceMs })));
}

const use = (store: TestStore, name: string) => store.perform({ kind: 'UseProvider', name });

/** Instructions: preparing, sending and finding them; which orders to look up, and the provider of them. */
export function operationPromises({ test }: StoreTests): void {
  test('a REFUND of an UNPAID order is confirmed if an operator closes the order', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const { instructionId } = await store.perform(toResolve(store.gallery, 'REFUND', escrowId));
    await store.perform({ kind: 'CloseOrder', by: tester, escrowId, at: noon });
    const statusOf = async (id: string) => (await store.findInstruction(id))?.status;
    assert.deepEqual([await statusOf(instructionId), await statusOf(holdId)], ['CONFIRMED', 'DECLINED']);
  });

  test('a REFUND of an UNPAID order prepares one CANCEL, and the order is due in a moment', async (store) => {
    const by = store.gallery;
    const { escrowId, holdId } = await store.orderIn(by, 'UNPAID');
    await store.recordSent(holdId, noon.atMs + 9);
    const nextAction = { url: 'https://bank.example/1', untilMs: noon.atMs + 60_000 };
    await store.settled(escrowId, { ended: [], nextAction, lookUpAtMs: noon.atMs + 9 });
    const cancel = await store.perform(toResolve(by, 'REFUND', escrowId, { owner: by.callerId }));
    assert.deepEqual([cancel.kind, cancel.status], ['CANCEL', 'PREPARED']);
    const { state, pending, nextAction: left } = cancel.order;
    assert.deepEqual([state, pending, left], ['UNPAID', 'REFUND', undefined]);
    await assertDueAt(store, escrowId, noon.atMs + 2_000);
    assert.deepEqual(await store.perform(toResolve(by, 'REFUND', escrowId)), cancel);
    await refused(store.perform(toResolve(by, 'RELEASE', escrowId)), 'ESCROW_STATE_CONFLICT');
    assert.equal((await store.caseOf(escrowId)).open.length, 2);
  });

  for (const kind of kinds) {
    const other = otherThan(kind);
    test(`a second ${kind} and a replay return the open one, a ${other} is a conflict, and the replay gets the end`, async (store) => {
      const by = store.gallery;
      const { escrowId, filingNo } = await store.orderIn(by, 'FROZEN');
      const first = underKey(by.callerId, 'k', toResolve(by, kind, escrowId, { owner: by.callerId }));
      const repeat = () => store.done(first);
      const { result: prepared } = await repeat();
      const { instructionId } = prepared;
      const order = await store.findEscrow(escrowId);
      assert.deepEqual(prepared, { instructionId, kind, status: 'PREPARED', reason: undefined, order });
      assert.deepEqual(await store.findInstruction(instructionId), prepared);
      assert.equal(prepared.order.state, 'FROZEN');
      for (const status of ['PREPARED', 'SENT', 'UNKNOWN'] as const) {
        if (status === 'SENT') await store.recordSent(instructionId);
        if (status === 'UNKNOWN') await store.unanswered(escrowId, 1);
        const result: typeof prepared = { ...prepared, status };
        assert.deepEqual(await store.perform(toResolve(by, kind, escrowId)), result);
        assert.deepEqual(await repeat(), { kind: 'DONE', result, isReplay: false });
        await refused(store.perform(toResolve(by, other, escrowId)), 'ESCROW_STATE_CONFLICT');
      }
      assert.equal((await store.caseOf(escrowId)).open.length, 1);
      const declined = replayOf({ instructionId, kind, status: 'DECLINED' });
      await store.settled(escrowId, { ended: endedAs('DECLINED', await store.caseOf(escrowId)) });
      assert.partialDeepStrictEqual(await repeat(), declined);
      await store.resolved(by, escrowId, other);
      await store.opened(by, filingNo);
      const last = await repeat();
      assert.partialDeepStrictEqual(last, declined);
      assert.deepEqual(
        [last.result.order.escrowId, last.result.order.state],
        [escrowId, other === 'RELEASE' ? 'RELEASED' : 'REFUNDED'],
      );
    });

    test(`a ${kind} of an unknown order or of another owner's is rejected`, async (store) => {
      const other = await store.addPlatform('auction house');
      const { escrowId } = await store.frozen(store.gallery);
      const prepare = (id: string, owner: number | undefined) =>
        store.perform(toResolve(other, kind, id, { owner }));
      await refused(prepare(escrowId, other.callerId), 'ESCROW_NOT_FOUND');
      await refused(prepare('ES-2026-', undefined), 'ESCROW_NOT_FOUND');
      assert.deepEqual((await store.caseOf(escrowId)).open, []);
      assert.equal((await prepare(escrowId, undefined)).order.caller, 'gallery');
    });
  }

  test('an idempotency key stores the instruction that was open at its call', async (store) => {
    const by = store.gallery;
    const { escrowId } = await store.orderIn(by, 'FROZEN');
    const { instructionId } = await store.perform(toResolve(by, 'RELEASE', escrowId));
    const repeat = () => store.done(underKey(by.callerId, 'k', toResolve(by, 'RELEASE', escrowId)));
    assert.equal((await repeat()).result.instructionId, instructionId);
    await store.settled(escrowId, { to: 'RELEASED' });
    assert.partialDeepStrictEqual(await repeat(), replayOf({ instructionId, status: 'CONFIRMED' }));
  });

  test('a replay of an opening returns the first order in its current state', async (store) => {
    const by = store.gallery;
    const filingNo = await store.fileOne(by);
    const repeat = () => store.done(underKey(by.callerId, 'k', toOpen(by, filingNo)));
    const first = await repeat();
    assert.equal(first.isReplay, false);
    assert.deepEqual(await repeat(), first);
    const { instructionId, order } = first.result;
    await store.settled(order.escrowId, { to: 'FROZEN' });
    assert.partialDeepStrictEqual(
      await repeat(),
      replayOf({ instructionId, status: 'CONFIRMED', order: { state: 'FROZEN' } }),
    );
    await store.resolved(by, order.escrowId, 'REFUND');
    assert.partialDeepStrictEqual(await repeat(), replayOf({ instructionId, order: { state: 'REFUNDED' } }));
  });

  test('a sent instruction is SENT, and its order is due when a response should have come', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    await assertDueAt(store, escrowId, noon.atMs + 2_000);
    await store.recordSent(holdId, 5_000);
    assert.equal((await store.findInstruction(holdId))?.status, 'SENT');
    await assertDueAt(store, escrowId, 5_000);
    await store.unanswered(escrowId, 6_000);
    await store.recordSent(holdId, 7_000);
    assert.equal((await store.findInstruction(holdId))?.status, 'SENT');
    assert.equal((await store.caseOf(escrowId)).failedAttempts, 1);
    await assertDueAt(store, escrowId, 7_000);
  });

  test('an instruction is sent by one instance, and by another one once its order is due', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const send = (
      expected: Pick<Command<'RecordSent'>, 'status' | 'expectedLookUpAtMs'>,
      lookUpAtMs: number,
    ) => store.perform({ kind: 'RecordSent', instructionId: holdId, ...expected, lookUpAtMs });
    const prepared = { status: 'PREPARED', expectedLookUpAtMs: noon.atMs + 2_000 } as const;
    assert.deepEqual(await Promise.all([send(prepared, 5_000), send(prepared, 6_000)]), [true, false]);
    const sent = (expectedLookUpAtMs: number) => ({ status: 'SENT', expectedLookUpAtMs }) as const;
    assert.equal(await send(sent(6_000), 7_000), false);
    assert.deepEqual(await Promise.all([send(sent(5_000), 8_000), send(sent(5_000), 9_000)]), [true, false]);
    await assertDueAt(store, escrowId, 8_000);
  });

  test('what is under way at one instance is not changed by another one', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const earlier = await store.caseOf(escrowId);
    await store.recordSent(holdId, 5_000);
    const sent = await store.caseOf(escrowId);
    assert.equal(await store.updateOrder(settlementOf(earlier, { ended: [], lookUpAtMs: 1 })), undefined);
    const { lookUpAtMs: expectedLookUpAtMs } = earlier;
    const unanswered = { escrowId, expectedLookUpAtMs, notificationCount: 0, lookUpAtMs: 1, nowMs: 1 };
    assert.equal(await store.perform({ kind: 'RecordUnanswered', ...unanswered }), false);
    assert.deepEqual(await store.caseOf(escrowId), sent);
    await store.notify('event', { holdId }, 1_000);
    await assertDueAt(store, escrowId, 5_000);
    assert.ok(
      await store.updateOrder(settlementOf(sent, { to: 'FROZEN', ended: endedAs('CONFIRMED', sent) })),
    );
    await assertDueAt(store, escrowId, noon.atMs);
  });

  test('a notification makes an order due whose buyer has to act', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    await store.recordSent(holdId, 5_000);
    const nextAction = { url: 'https://bank.example/1', untilMs: noon.atMs + 60_000 };
    await store.settled(escrowId, { ended: [], nextAction, lookUpAtMs: 9_000 });
    await store.notify('event', { holdId }, 1_000);
    await assertDueAt(store, escrowId, 1_000);
  });

  test('an instruction that has ended or does not exist cannot be sent', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'FROZEN');
    await assert.rejects(store.recordSent(holdId, 5_000));
    await assert.rejects(store.recordSent('no instruction', 5_000));
    assert.equal((await store.findInstruction(holdId))?.status, 'CONFIRMED');
    assert.deepEqual(await store.due(6_000, 9_000), []);
    await store.settled(escrowId, { to: 'CLOSED' });
    await assert.rejects(store.recordSent(holdId, 5_000));
  });

  test('an instruction without a response is UNKNOWN, counted, and due again', async (store) => {
    const { escrowId, holdId } = await store.orderIn(store.gallery, 'UNPAID');
    const { instructionId } = workOf(store.gallery);
    await store.recordSent(holdId);
    await store.settled(escrowId, { ended: [], prepared: { instructionId, kind: 'CANCEL' } });
    for (const times of [1, 2, 3]) {
      await store.unanswered(escrowId, 1_000 * times);
      const found = await store.caseOf(escrowId);
      assert.equal(found.failedAttempts, times);
      assert.deepEqual(
        found.open.map(({ kind, status }) => `${kind} ${status}`),
        ['FREEZE UNKNOWN', 'CANCEL PREPARED'],
      );
      await assertDueAt(store, escrowId, 1_000 * times);
    }
    const unknown = { escrowId: 'ES-2026-', expectedLookUpAtMs: 1, notificationCount: 0, nowMs: 1 };
    const noAnswer = store.perform({ kind: 'RecordUnanswered', ...unknown, lookUpAtMs: 1 });
    await refused(noAnswer, 'ESCROW_NOT_FOUND');
  });

  test('a start makes due exactly the orders with an open instruction', async (store) => {
    const by = store.gallery;
    const orders = new Map<string, string>();
    for (const state of states) orders.set(state, (await store.orderIn(by, state)).escrowId);
    const releasing = await store.frozen(by);
    await store.perform(toResolve(by, 'RELEASE', releasing.escrowId));
    const sent = await store.opened(by);
    await store.recordSent(sent.holdId, 90_000);
    const unknown = await store.opened(by);
    await store.recordSent(unknown.holdId, 90_000);
    await store.unanswered(unknown.escrowId, 90_000);
    const waiting = await store.opened(by);
    await store.stopped(waiting.escrowId);
    await store.perform({ kind: 'ResumeOpen', nowMs: 1_000 });
    assert.deepEqual(await store.due(999, 90_000), []);
    const resumed = await store.due(1_000, 90_000);
    const expected = [orders.get('UNPAID'), releasing.escrowId, sent.escrowId, unknown.escrowId];
    assert.deepEqual([...resumed].sort(), expected.sort());
  });

  test('orders are listed by due time, those beyond the horizon last', async (store) => {
    const at = new Map<string, number>();
    for (const lookUpAtMs of [500, 100, 9_000, 300, 2_000, 5_001, 5_000, 200]) {
      const { escrowId, holdId } = await store.opened(store.gallery);
      await store.recordSent(holdId, lookUpAtMs);
      at.set(escrowId, lookUpAtMs);
    }
    await store.frozen(store.gallery);
    const dueTimes = async (nowMs: number, horizonMs: number, perCaller: number) =>
      (await store.perform(toListDue({ nowMs, horizonMs, perCaller }))).map(({ escrowId }) =>
        at.get(escrowId),
      );
    assert.deepEqual(await dueTimes(99, 10_000, 10), []);
    assert.deepEqual(await dueTimes(100, 10_000, 10), [100]);
    assert.deepEqual(await dueTimes(499, 10_000, 10), [100, 200, 300]);
    assert.deepEqual(await dueTimes(500, 10_000, 10), [100, 200, 300, 500]);
    assert.deepEqual(await dueTimes(500, 10_000, 2), [100, 200]);
    assert.deepEqual(await dueTimes(250, 5_000, 10), [100, 200, 5_001, 9_000]);
    assert.deepEqual(await dueTimes(250, 5_000, 3), [100, 200, 5_001]);
    assert.deepEqual(await dueTimes(250, 5_000, 2), [100, 200]);
    assert.deepEqual(await dueTimes(0, 8_999, 10), [9_000]);
    assert.deepEqual(await dueTimes(0, 9_000, 10), []);
    assert.deepEqual(
      await dueTimes(1_000_000, 2_000_000, 100),
      [...at.values()].toSorted((a, b) => a - b),
    );
  });

  test('callers are listed in rotation, and orders whose last attempt failed are separate', async (store) => {
    const names = ['idle', 'house', 'museum', 'dealer'];
    const [idle = assert.fail(), ...active] = await Promise.all(names.map((name) => store.addPlatform(name)));
    const [house = assert.fail(), museum = assert.fail(), dealer = assert.fail()] = active.toSorted(
      (one, other) => one.callerId - other.callerId,
    );
    await store.frozen(idle);
    const ordered = async (by: CallerRef, lookUpAtMs: number, hasFailed = false) => {
      const { escrowId, holdId } = await store.opened(by);
      if (hasFailed) await store.unanswered(escrowId, lookUpAtMs);
      else await store.recordSent(holdId, lookUpAtMs);
      return { escrowId, callerId: by.callerId, lookUpAtMs };
    };
    const first = [await ordered(house, 1), await ordered(house, 2), await ordered(house, 3)];
    const second = [await ordered(museum, 50)];
    const failed = [await ordered(museum, 10, true), await ordered(museum, 20, true)];
    const third = [await ordered(dealer, 60), await ordered(dealer, 70)];
    const list = (over: Parameters<typeof toListDue>[0]) => store.perform(toListDue({ nowMs: 99, ...over }));

    assert.deepEqual(await list({}), [...first, ...second, ...third]);
    assert.deepEqual(await list({ perCaller: 1 }), [first[0], ...second, third[0]]);
    assert.deepEqual(await list({ callers: 2 }), [...first, ...second]);
    const { callerId: after } = house;
    assert.deepEqual(await list({ after }), [...second, ...third, ...first]);
    assert.deepEqual(await list({ after, callers: 2 }), [...second, ...third]);
    assert.deepEqual(await list({ after: dealer.callerId, callers: 1 }), first);
    assert.deepEqual(await list({ after: dealer.callerId + 5, callers: 1 }), first);
    assert.deepEqual(await list({ hasFailed: true }), failed);
    assert.deepEqual(await list({ hasFailed: true, nowMs: 10 }), failed.slice(0, 1));
    assert.deepEqual(await list({ hasFailed: true, nowMs: 9 }), []);
  });

  test('each RELEASED order is in one share, neighbors in different ones, and no other order in any', async (store) => {
    const released: string[] = [];
    for (let count = 0; count < 6; count += 1)
      released.push((await store.orderIn(store.gallery, 'RELEASED')).escrowId);
    for (const state of states.filter((each) => each !== 'RELEASED'))
      await store.orderIn(store.gallery, state);
    const three = await releasedOf(store, 3, noon.atMs);
    assert.deepEqual(
      three.map((share) => share.length),
      [2, 2, 2],
    );
    assert.deepEqual(three.flat().sort(), released.sort());
    assert.deepEqual((await releasedOf(store, 1, noon.atMs))[0]?.toSorted(), released);
    assert.deepEqual((await releasedOf(store, 1_000, noon.atMs)).flat().sort(), released);
    assert.deepEqual(await releasedOf(store, 3, noon.atMs), three);
  });

  test('a RELEASED order is listed if it was released or its payment changed since the given time', async (store) => {
    const { escrowId } = await store.orderIn(store.gallery, 'RELEASED');
    const since = async (ms: number) => (await releasedOf(store, 1, ms)).flat();
    assert.deepEqual(await since(noon.atMs), [escrowId]);
    assert.deepEqual(await since(noon.atMs + 1), []);
    const later = { ...noon, atMs: noon.atMs + 86_400_000 };
    await store.settled(escrowId, { afterPayout: { payment: 'DISPUTED' } }, later);
    assert.deepEqual(await since(later.atMs), [escrowId]);
    assert.deepEqual(await since(later.atMs + 1), []);
  });

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
