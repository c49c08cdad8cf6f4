import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type CallerRef, idempotencyRetentionS, type Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  caseOf,
  endedAs,
  fileOne,
  frozen,
  noon,
  opened,
  openStore,
  orderIn,
  refused,
  resolved,
  type StoreEngine,
  settled,
  states,
  stopped,
  terms,
  workOf,
} from './fixtures.ts';

const kinds = ['RELEASE', 'REFUND'] as const;
const start = 1_790_000_000;
const fingerprint = new Uint8Array(32).fill(1);

const otherThan = (kind: (typeof kinds)[number]) => (kind === 'RELEASE' ? 'REFUND' : 'RELEASE');

/** Claims an idempotency key for a caller. */
const claim = (store: Store, { callerId }: CallerRef, key: string, nowS = start) =>
  store.idempotency.claim({ callerId, key, fingerprint, nowS });

/** Whether an order is due at a time, and not before it. */
async function assertDueAt(store: Store, escrowId: string, atMs: number): Promise<void> {
  const farMs = Number.MAX_SAFE_INTEGER;
  assert.equal((await store.escrows.due(atMs - 1, farMs, 100)).includes(escrowId), false, 'too early');
  assert.equal((await store.escrows.due(atMs, farMs, 100)).includes(escrowId), true, 'too late');
}

/** Instructions: preparing, giving and asking about them. */
export function operationPromises(engine: StoreEngine): void {
  for (const kind of kinds) {
    test(`a ${kind} is prepared for a FROZEN order once: who asks again gets that one`, async (t) => {
      const store = await openStore(t, engine);
      const by = await addPlatform(store, 'gallery');
      const { escrowId } = await frozen(store, by);
      const work = workOf(by);
      const prepared = await store.escrows.prepare(kind, escrowId, noon, work, by.callerId);
      const order = await store.escrows.find(escrowId, undefined);
      assert.deepEqual(prepared, { operationId: work.operationId, kind, status: 'PREPARED', order });
      assert.deepEqual(await store.escrows.findOperation(work.operationId), prepared);
      assert.equal(prepared.order.state, 'FROZEN');
      for (const status of ['PREPARED', 'SENT', 'UNKNOWN'] as const) {
        if (status === 'SENT') await store.escrows.send(work.operationId, 1);
        if (status === 'UNKNOWN') await store.escrows.leaveOpen(escrowId, 1, 0);
        const again = await store.escrows.prepare(kind, escrowId, noon, workOf(by), undefined);
        assert.deepEqual(again, { ...prepared, status });
      }
      assert.equal((await caseOf(store, escrowId)).open.length, 1);
    });

    test(`a ${kind} keeps a ${otherThan(kind)} from being prepared while it is under way`, async (t) => {
      const store = await openStore(t, engine);
      const by = await addPlatform(store, 'gallery');
      const { escrowId } = await frozen(store, by);
      const { operationId } = await store.escrows.prepare(kind, escrowId, noon, workOf(by), undefined);
      const other = otherThan(kind);
      for (const status of ['PREPARED', 'SENT', 'UNKNOWN']) {
        if (status === 'SENT') await store.escrows.send(operationId, 1);
        if (status === 'UNKNOWN') await store.escrows.leaveOpen(escrowId, 1, 0);
        const conflicting = store.escrows.prepare(other, escrowId, noon, workOf(by), undefined);
        await refused(conflicting, 'ESCROW_STATE_CONFLICT');
      }
      await settled(store, escrowId, { ended: endedAs('DECLINED', await caseOf(store, escrowId)) });
      const after = await store.escrows.prepare(other, escrowId, noon, workOf(by), undefined);
      assert.equal(after.kind, other);
      assert.equal((await store.escrows.findOperation(operationId))?.status, 'DECLINED');
    });

    for (const state of states.filter((each) => each !== 'FROZEN')) {
      test(`a ${kind} of an order that is ${state} is a conflict, and nothing is prepared`, async (t) => {
        const store = await openStore(t, engine);
        const by = await addPlatform(store, 'gallery');
        const { escrowId } = await orderIn(store, by, state);
        const before = await caseOf(store, escrowId);
        const work = workOf(by);
        await refused(
          store.escrows.prepare(kind, escrowId, noon, work, by.callerId),
          'ESCROW_STATE_CONFLICT',
        );
        assert.deepEqual(await caseOf(store, escrowId), before);
        assert.equal(await store.escrows.findOperation(work.operationId), undefined);
      });
    }

    test(`a ${kind} of another owner's order, or of none, finds no order`, async (t) => {
      const store = await openStore(t, engine);
      const mine = await addPlatform(store, 'gallery');
      const other = await addPlatform(store, 'auction house');
      const { escrowId } = await frozen(store, mine);
      const prepare = (id: string, owner: number | undefined) =>
        store.escrows.prepare(kind, id, noon, workOf(other), owner);
      await refused(prepare(escrowId, other.callerId), 'ESCROW_NOT_FOUND');
      await refused(prepare('ES-2026-', undefined), 'ESCROW_NOT_FOUND');
      assert.deepEqual((await caseOf(store, escrowId)).open, []);
      assert.equal((await prepare(escrowId, undefined)).order.caller, 'gallery');
    });

    test(`of calls to ${kind} at once, and to do the other, one instruction comes`, async (t) => {
      const store = await openStore(t, engine);
      const by = await addPlatform(store, 'gallery');
      const { escrowId } = await frozen(store, by);
      const ask = (asked: (typeof kinds)[number]) =>
        store.escrows.prepare(asked, escrowId, noon, workOf(by), undefined);
      const first = ask(kind);
      const conflicting = refused(ask(otherThan(kind)), 'ESCROW_STATE_CONFLICT');
      const prepared = await Promise.all([first, ask(kind), ask(kind)]);
      await conflicting;
      assert.equal(new Set(prepared.map(({ operationId }) => operationId)).size, 1);
      assert.equal((await caseOf(store, escrowId)).open.length, 1);
    });

    test(`a ${kind} repeated under its key is the first one, whatever became of it`, async (t) => {
      const store = await openStore(t, engine);
      const by = await addPlatform(store, 'gallery');
      const { escrowId, filingNo } = await frozen(store, by);
      await claim(store, by, 'k');
      const repeat = () => {
        const work = workOf(by, { idempotencyKey: 'k' });
        return store.escrows.prepare(kind, escrowId, noon, work, by.callerId);
      };
      const { operationId } = await repeat();
      await settled(store, escrowId, { ended: endedAs('DECLINED', await caseOf(store, escrowId)) });
      assert.partialDeepStrictEqual(await repeat(), { operationId, kind, status: 'DECLINED' });
      await resolved(store, by, escrowId, otherThan(kind));
      assert.partialDeepStrictEqual(await repeat(), { operationId, kind, status: 'DECLINED' });
      await opened(store, by, filingNo);
      const last = await repeat();
      assert.partialDeepStrictEqual(last, { operationId, kind, status: 'DECLINED', order: { escrowId } });
      assert.equal(last.order.state, otherThan(kind) === 'RELEASE' ? 'RELEASED' : 'REFUNDED');
    });
  }

  test('a key remembers the instruction that was under way when its call came', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { escrowId } = await frozen(store, by);
    const { operationId } = await store.escrows.prepare('RELEASE', escrowId, noon, workOf(by), undefined);
    await claim(store, by, 'k');
    const repeat = () =>
      store.escrows.prepare('RELEASE', escrowId, noon, workOf(by, { idempotencyKey: 'k' }), undefined);
    assert.equal((await repeat()).operationId, operationId);
    await settled(store, escrowId, { to: 'RELEASED' });
    assert.partialDeepStrictEqual(await repeat(), { operationId, status: 'CONFIRMED' });
  });

  test('an order opened again under its key is the first one, whatever became of it', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const filingNo = await fileOne(store, by);
    await claim(store, by, 'k');
    const repeat = (of = store) =>
      of.escrows.open(terms(filingNo), noon, workOf(by, { idempotencyKey: 'k' }), by.callerId);
    const first = await repeat();
    assert.deepEqual(await repeat(), first);
    await settled(store, first.order.escrowId, { to: 'FROZEN' });
    assert.partialDeepStrictEqual(await repeat(), { operationId: first.operationId, status: 'CONFIRMED' });
    await resolved(store, by, first.order.escrowId, 'REFUND');
    await store.durable();
    const later = await repeat(await openStore(t, engine, dataDir));
    assert.equal(later.operationId, first.operationId);
    assert.equal(later.order.state, 'REFUNDED');
  });

  test('a key that is released keeps its instruction: the next claim goes on with it', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const filingNo = await fileOne(store, by);
    await claim(store, by, 'k');
    const repeat = () =>
      store.escrows.open(terms(filingNo), noon, workOf(by, { idempotencyKey: 'k' }), by.callerId);
    const { operationId } = await repeat();
    await store.idempotency.release(by.callerId, 'k');
    assert.deepEqual(await claim(store, by, 'k'), { kind: 'CLAIMED' });
    assert.equal((await repeat()).operationId, operationId);
    const other = new Uint8Array(32).fill(2);
    const { callerId } = by;
    assert.deepEqual(await store.idempotency.claim({ callerId, key: 'k', fingerprint: other, nowS: start }), {
      kind: 'REUSED',
    });
  });

  test('an opening that was refused leaves its key without an instruction', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { escrowId, filingNo } = await opened(store, by);
    await claim(store, by, 'k');
    const open = () =>
      store.escrows.open(terms(filingNo), noon, workOf(by, { idempotencyKey: 'k' }), by.callerId);
    await refused(open(), 'ESCROW_ACTIVE');
    await settled(store, escrowId, { to: 'CLOSED' });
    assert.notEqual((await open()).order.escrowId, escrowId);
  });

  test('a key that was forgotten after its time opens anew', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const filingNo = await fileOne(store, by);
    await claim(store, by, 'k');
    const open = () =>
      store.escrows.open(terms(filingNo), noon, workOf(by, { idempotencyKey: 'k' }), by.callerId);
    const first = await open();
    await settled(store, first.order.escrowId, { to: 'CLOSED' });
    await claim(store, by, 'k', start + idempotencyRetentionS - 1);
    assert.equal((await open()).operationId, first.operationId);
    await claim(store, by, 'k', start + idempotencyRetentionS);
    const anew = await open();
    assert.notEqual(anew.operationId, first.operationId);
    assert.notEqual(anew.order.escrowId, first.order.escrowId);
  });

  test('each caller has keys of its own, and calls without a key share nothing', async (t) => {
    const store = await openStore(t, engine);
    const mine = await addPlatform(store, 'gallery');
    const other = await addPlatform(store, 'auction house');
    const ids: string[] = [];
    for (const by of [mine, other]) {
      await claim(store, by, 'k');
      await claim(store, by, '');
      const filingNo = await fileOne(store, by);
      const work = workOf(by, { idempotencyKey: 'k' });
      ids.push((await store.escrows.open(terms(filingNo), noon, work, by.callerId)).order.escrowId);
      ids.push((await opened(store, by)).escrowId, (await opened(store, by)).escrowId);
    }
    assert.equal(new Set(ids).size, 6);
  });

  test('an instruction that is given is SENT, its order due when an answer should have come', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId, holdId } = await opened(store, await addPlatform(store, 'gallery'));
    await assertDueAt(store, escrowId, noon.atMs);
    await store.escrows.send(holdId, 5_000);
    assert.equal((await store.escrows.findOperation(holdId))?.status, 'SENT');
    await assertDueAt(store, escrowId, 5_000);
    await store.escrows.leaveOpen(escrowId, 6_000, 0);
    await store.escrows.send(holdId, 7_000);
    assert.equal((await store.escrows.findOperation(holdId))?.status, 'SENT');
    assert.equal((await caseOf(store, escrowId)).unanswered, 1);
    await assertDueAt(store, escrowId, 7_000);
  });

  test('an instruction that ended, or is none, is not given', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { escrowId, holdId } = await frozen(store, by);
    await assert.rejects(store.escrows.send(holdId, 5_000));
    await assert.rejects(store.escrows.send('no instruction', 5_000));
    assert.equal((await store.escrows.findOperation(holdId))?.status, 'CONFIRMED');
    assert.deepEqual(await store.escrows.due(6_000, 9_000, 10), []);
    await settled(store, escrowId, { to: 'CLOSED' });
    await assert.rejects(store.escrows.send(holdId, 5_000));
  });

  test('what the institution did not answer is UNKNOWN, counted, and due again', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { escrowId, holdId } = await opened(store, by);
    const { operationId } = workOf(by);
    await store.escrows.send(holdId, 1);
    await settled(store, escrowId, { ended: [], prepared: { operationId, kind: 'CANCEL' } });
    for (const times of [1, 2, 3]) {
      await store.escrows.leaveOpen(escrowId, 1_000 * times, 0);
      const found = await caseOf(store, escrowId);
      assert.equal(found.unanswered, times);
      assert.deepEqual(
        found.open.map(({ kind, status }) => `${kind} ${status}`),
        ['FREEZE UNKNOWN', 'CANCEL PREPARED'],
      );
      await assertDueAt(store, escrowId, 1_000 * times);
    }
    await refused(store.escrows.leaveOpen('ES-2026-', 1, 0), 'ESCROW_NOT_FOUND');
  });

  test('what is left open of one order is no matter of others', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const [one, other] = [await opened(store, by), await opened(store, by)];
    await store.escrows.send(one.holdId, 1);
    await store.escrows.send(other.holdId, 2);
    const before = await caseOf(store, other.escrowId);
    await store.escrows.leaveOpen(one.escrowId, 9, 0);
    assert.deepEqual(await caseOf(store, other.escrowId), before);
    await assertDueAt(store, other.escrowId, 2);
  });

  test('a start makes every order with an open instruction due, and no other', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const orders = new Map<string, string>();
    for (const state of states) orders.set(state, (await orderIn(store, by, state)).escrowId);
    const releasing = await frozen(store, by);
    await store.escrows.prepare('RELEASE', releasing.escrowId, noon, workOf(by), undefined);
    const sent = await opened(store, by);
    await store.escrows.send(sent.holdId, 90_000);
    const unknown = await opened(store, by);
    await store.escrows.send(unknown.holdId, 90_000);
    await store.escrows.leaveOpen(unknown.escrowId, 90_000, 0);
    const waiting = await opened(store, by);
    await stopped(store, waiting.escrowId);
    await store.escrows.resume(1_000);
    assert.deepEqual(await store.escrows.due(999, 90_000, 100), []);
    const due = await store.escrows.due(1_000, 90_000, 100);
    const expected = [orders.get('UNPAID'), releasing.escrowId, sent.escrowId, unknown.escrowId];
    assert.deepEqual([...due].sort(), expected.sort());
  });

  test('a start with nothing open changes nothing', async (t) => {
    const store = await openStore(t, engine);
    await store.escrows.resume(1);
    const { escrowId } = await frozen(store, await addPlatform(store, 'gallery'));
    await settled(store, escrowId, { lookUpAtMs: 5_000 });
    await store.escrows.resume(1);
    await assertDueAt(store, escrowId, 5_000);
  });

  test('what is due longest comes first, and what a clock set back put off comes last', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const at = new Map<string, number>();
    for (const lookUpAtMs of [500, 100, 9_000, 300, 2_000, 5_001, 5_000, 200]) {
      const { escrowId, holdId } = await opened(store, by);
      await store.escrows.send(holdId, lookUpAtMs);
      at.set(escrowId, lookUpAtMs);
    }
    await frozen(store, by);
    const due = async (nowMs: number, horizonMs: number, count: number) =>
      (await store.escrows.due(nowMs, horizonMs, count)).map((escrowId) => at.get(escrowId));
    assert.deepEqual(await due(99, 10_000, 10), []);
    assert.deepEqual(await due(100, 10_000, 10), [100]);
    assert.deepEqual(await due(499, 10_000, 10), [100, 200, 300]);
    assert.deepEqual(await due(500, 10_000, 10), [100, 200, 300, 500]);
    assert.deepEqual(await due(500, 10_000, 2), [100, 200]);
    assert.deepEqual(await due(250, 5_000, 10), [100, 200, 5_001, 9_000]);
    assert.deepEqual(await due(250, 5_000, 3), [100, 200, 5_001]);
    assert.deepEqual(await due(250, 5_000, 2), [100, 200]);
    assert.deepEqual(await due(0, 8_999, 10), [9_000]);
    assert.deepEqual(await due(0, 9_000, 10), []);
    assert.deepEqual(
      await due(1_000_000, 2_000_000, 100),
      [...at.values()].toSorted((a, b) => a - b),
    );
  });

  test('nothing but a decision makes an order due that waits for a person', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { escrowId, holdId } = await opened(store, by);
    await store.escrows.send(holdId, 1);
    await stopped(store, escrowId, 'The amounts differ.');
    const assertNotDue = async (after: string) => {
      assert.deepEqual(await store.escrows.due(1_000, 1_000, 10), [], after);
      assert.equal((await caseOf(store, escrowId)).attention, 'The amounts differ.');
    };
    await assertNotDue('stopped');
    await store.escrows.resume(1);
    await assertNotDue('resume');
    await store.escrows.send(holdId, 1);
    await assertNotDue('send');
    await store.escrows.leaveOpen(escrowId, 1, 0);
    await assertNotDue('leaveOpen');
    await store.escrows.notified('event', holdId, 1);
    await assertNotDue('notified');
  });
}
