import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EscrowState } from '../../../src/domain/escrow.ts';
import type { OrderUpdate } from '../../../src/store/reconciliation-commands.ts';
import { perform, type Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  caseOf,
  due,
  endedAs,
  findInstruction,
  frozen,
  noon,
  oneUnitHeld,
  opened,
  openGallery,
  openStore,
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
  workOf,
} from './fixtures.ts';

const later = time('2026-12-02T00:30:00+08:00');

/** All that the store tells of an order and its filing. */
async function toldOf(store: Store, escrowId: string) {
  const found = await caseOf(store, escrowId);
  return {
    found,
    provenance: await perform(store, { kind: 'GetProvenance', filingNo: found.order.filingNo }),
  };
}

/** An order in a state, with an instruction that is open: what an update may end. */
async function withOpenInstruction(store: Store, state: EscrowState) {
  const by = await addPlatform(store, 'gallery');
  const order = await orderIn(store, by, state);
  if (state === 'FROZEN') {
    await perform(store, toResolve(by, 'RELEASE', order.escrowId, { owner: by.callerId }));
  } else if (state !== 'UNPAID') {
    const { instructionId } = workOf(by);
    await settled(store, order.escrowId, { prepared: { instructionId, kind: 'REFUND' } });
  }
  return order;
}

/** What the provider's word comes to. */
export function orderUpdatePromises(engine: StoreEngine): void {
  for (const from of states) {
    for (const to of states) {
      const written = to === from ? 'no history' : 'it into the history, once';
      test(`updating ${from} to ${to} writes ${written}`, async (t) => {
        const store = await openStore(t, engine);
        const { escrowId, filingNo } = await withOpenInstruction(store, from);
        const before = await caseOf(store, escrowId);
        const transfers = await transfersOf(store, filingNo);
        const ended = endedAs('DECLINED', before);
        const update = settlementOf(before, { to, ended, lookUpAtMs: 5 });
        const after = await perform(store, { kind: 'UpdateOrder', update, at: later });
        assert.deepEqual(await caseOf(store, escrowId), after);
        const { order, open } = await caseOf(store, escrowId);
        assert.equal(order.state, to);
        const change = to === from ? [] : [{ state: to, at: later.timestamp }];
        assert.deepEqual(order.history, [...before.order.history, ...change]);
        assert.deepEqual(open, []);
        const isReleased = to === 'RELEASED' && from !== 'RELEASED';
        assert.equal(await transfersOf(store, filingNo), transfers + (isReleased ? 1 : 0));
        assert.deepEqual(await due(store, 5, 10), [escrowId]);
      });

      if (to === from) continue;
      test(`an order that is ${from} is not settled from ${to}, and nothing is written`, async (t) => {
        const store = await openStore(t, engine);
        const { escrowId } = await withOpenInstruction(store, from);
        const before = await toldOf(store, escrowId);
        for (const target of states) {
          const update = settlementOf(before.found, {
            from: to,
            to: target,
            ended: endedAs('CONFIRMED', before.found),
            reference: 'theirs',
            review: { why: 'why', found: oneUnitHeld },
            lookUpAtMs: 5,
          });
          assert.equal(await perform(store, { kind: 'UpdateOrder', update, at: later }), undefined);
        }
        assert.deepEqual(await toldOf(store, escrowId), before);
        assert.deepEqual(await due(store, 5, Number.MAX_SAFE_INTEGER), []);
      });
    }
  }

  test('an update that ends what is not open any more, or never was, is not made', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { escrowId, holdId } = await frozen(store, by);
    const another = await opened(store, by);
    const release = await perform(store, toResolve(by, 'RELEASE', escrowId));
    const before = await toldOf(store, escrowId);
    const confirmed = (instructionId: string) => ({ instructionId, status: 'CONFIRMED' }) as const;
    const prepared = { instructionId: workOf(by).instructionId, kind: 'REFUND' } as const;
    for (const ended of [
      [confirmed(holdId)],
      [confirmed(release.instructionId), confirmed(holdId)],
      [confirmed(release.instructionId), confirmed(another.holdId)],
      [confirmed(release.instructionId), confirmed('no instruction')],
    ]) {
      const update = settlementOf(before.found, { to: 'RELEASED', ended, prepared, reference: 'theirs' });
      assert.equal(await perform(store, { kind: 'UpdateOrder', update, at: later }), undefined);
      assert.deepEqual(await toldOf(store, escrowId), before);
    }
    assert.equal((await findInstruction(store, another.holdId))?.status, 'PREPARED');
    assert.equal(await findInstruction(store, prepared.instructionId), undefined);
  });

  test('of updates made at once from one state, one is made, and one TRANSFER is appended', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { filingNo, escrowId } = await frozen(store, by);
    await perform(store, toResolve(by, 'RELEASE', escrowId));
    const found = await caseOf(store, escrowId);
    const update = settlementOf(found, { to: 'RELEASED', ended: endedAs('CONFIRMED', found) });
    const made = await Promise.all(
      [1, 2, 3, 4].map(() => perform(store, { kind: 'UpdateOrder', update, at: noon })),
    );
    assert.deepEqual(
      made.map((after) => after?.order.state),
      ['RELEASED', undefined, undefined, undefined],
    );
    assert.equal(await transfersOf(store, filingNo), 1);
    assert.equal((await caseOf(store, escrowId)).order.history.length, 3);
  });

  test('two open stores on one folder make one update', async (t) => {
    const dataDir = temporaryFolder(t);
    const [one, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    const by = await addPlatform(one, 'gallery');
    const { filingNo, escrowId } = await frozen(one, by);
    await perform(one, toResolve(by, 'RELEASE', escrowId));
    const found = await caseOf(other, escrowId);
    const update = settlementOf(found, { to: 'RELEASED', ended: endedAs('CONFIRMED', found) });
    assert.ok(await perform(one, { kind: 'UpdateOrder', update, at: noon }));
    assert.equal(await perform(other, { kind: 'UpdateOrder', update, at: noon }), undefined);
    assert.equal(await transfersOf(other, filingNo), 1);
    assert.equal((await caseOf(other, escrowId)).order.state, 'RELEASED');
  });

  test('an order that is RELEASED already gets no second TRANSFER', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId, filingNo } = await orderIn(store, await addPlatform(store, 'gallery'), 'RELEASED');
    for (let again = 0; again < 2; again += 1) await settled(store, escrowId, { lookUpAtMs: 5 });
    assert.equal(await transfersOf(store, filingNo), 1);
  });

  test('a TRANSFER is dated by its release, where the business is done', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { filingNo, escrowId } = await frozen(store, by);
    await settled(store, escrowId, { to: 'RELEASED' }, later);
    const provenance = await perform(store, { kind: 'GetProvenance', filingNo });
    assert.deepEqual(provenance?.records.at(-1), { event: 'TRANSFER', at: '2026-12-02' });
  });

  test('instructions end as the update says, and the one that it prepares is open', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { escrowId, holdId } = await opened(store, by);
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

  test('an order that was cancelled since the provider was asked does not come to be FROZEN', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { escrowId } = await opened(store, by);
    const asked = await caseOf(store, escrowId);
    await perform(store, toResolve(by, 'REFUND', escrowId));
    const before = await toldOf(store, escrowId);
    const held = settlementOf(asked, { to: 'FROZEN', ended: endedAs('CONFIRMED', asked) });
    assert.equal(await perform(store, { kind: 'UpdateOrder', update: held, at: later }), undefined);
    assert.deepEqual(await toldOf(store, escrowId), before);
    const returned = settlementOf(before.found, { to: 'CLOSED', ended: endedAs('CONFIRMED', before.found) });
    const closed = await perform(store, { kind: 'UpdateOrder', update: returned, at: later });
    assert.deepEqual([closed?.order.state, closed?.open], ['CLOSED', []]);
  });

  test("the provider's reference is kept until it gives another one", async (t) => {
    const store = await openStore(t, engine);
    const { escrowId } = await opened(store, await addPlatform(store, 'gallery'));
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

  test('an update says when to ask again', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId } = await opened(store, await addPlatform(store, 'gallery'));
    await settled(store, escrowId, { ended: [], lookUpAtMs: 9 });
    assert.deepEqual(await due(store, 8, 100), []);
    assert.deepEqual(await due(store, 9, 100), [escrowId]);
    await settled(store, escrowId, { ended: [], lookUpAtMs: undefined });
    assert.deepEqual(await due(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), []);
  });

  test('attempts in vain are counted until the provider is heard', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId } = await opened(store, await addPlatform(store, 'gallery'));
    for (let times = 0; times < 3; times += 1) await unanswered(store, escrowId, 7);
    await settled(store, escrowId, { ended: [], resetsAttempts: false });
    assert.equal((await caseOf(store, escrowId)).failedAttempts, 3);
    await settled(store, escrowId, { ended: [], resetsAttempts: true });
    assert.equal((await caseOf(store, escrowId)).failedAttempts, 0);
  });

  test('a notification that comes while the provider is asked has it asked again', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId, holdId } = await opened(store, await addPlatform(store, 'gallery'));
    const { notificationCount } = await caseOf(store, escrowId);
    await perform(store, {
      kind: 'TakeNotification',
      eventId: 'event',
      about: { holdId },
      nowMs: later.atMs - 1,
    });
    await settled(store, escrowId, { ended: [], notificationCount, lookUpAtMs: undefined });
    assert.deepEqual(await due(store, later.atMs, Number.MAX_SAFE_INTEGER), [escrowId]);
    await settled(store, escrowId, { ended: [], lookUpAtMs: undefined });
    assert.deepEqual(await due(store, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER), []);
  });

  test('a notification that comes while an attempt is in vain is not put off by it', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId, holdId } = await opened(store, await addPlatform(store, 'gallery'));
    const { notificationCount } = await caseOf(store, escrowId);
    await perform(store, {
      kind: 'TakeNotification',
      eventId: 'event',
      about: { holdId },
      nowMs: later.atMs,
    });
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

  test('review stops the looking up, and lasts until a person has decided', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { escrowId, holdId } = await opened(store, by);
    const review = { why: 'It differs.', found: oneUnitHeld };
    await settled(store, escrowId, { ended: [], review, lookUpAtMs: 1 });
    const before = await caseOf(store, escrowId);
    assert.equal(before.review, 'It differs.');
    assert.equal(before.open.length, 1);
    assert.equal(
      await perform(store, {
        kind: 'UpdateOrder',
        update: settlementOf(before, { to: 'FROZEN' }),
        at: later,
      }),
      undefined,
    );
    await perform(store, { kind: 'TakeNotification', eventId: 'event', about: { holdId }, nowMs: 1 });
    assert.deepEqual(await due(store, 1_000, 2_000), []);
    assert.deepEqual(
      { ...(await caseOf(store, escrowId)), notificationCount: 0 },
      { ...before, notificationCount: 0 },
    );
    await perform(store, toDecide(escrowId, 'LOOK_AGAIN'));
    await settled(store, escrowId, { ended: [], lookUpAtMs: 1 });
    assert.equal((await caseOf(store, escrowId)).review, undefined);
    assert.deepEqual(await due(store, 1_000, 2_000), [escrowId]);
  });

  test('an update of which a part is impossible is not made at all', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const { escrowId, holdId } = await opened(store, by);
    const before = await toldOf(store, escrowId);
    // The name of the new instruction is taken.
    const prepared = { instructionId: holdId, kind: 'REFUND' } as const;
    const update = settlementOf(before.found, {
      to: 'RELEASED',
      ended: endedAs('CONFIRMED', before.found),
      prepared,
      reference: 'theirs',
    });
    await assert.rejects(perform(store, { kind: 'UpdateOrder', update, at: noon }));
    assert.deepEqual(await toldOf(store, escrowId), before);
  });

  test('an update of an unknown order is rejected', async (t) => {
    const store = await openStore(t, engine);
    const { escrowId } = await opened(store, await addPlatform(store, 'gallery'));
    const nowhere: OrderUpdate = { ...settlementOf(await caseOf(store, escrowId)), escrowId: 'ES-2026-' };
    await refused(perform(store, { kind: 'UpdateOrder', update: nowhere, at: noon }), 'ESCROW_NOT_FOUND');
  });
}
