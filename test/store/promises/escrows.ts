import assert from 'node:assert/strict';
import type { PageQuery } from '../../../src/store/paging.ts';
import {
  anyOrder,
  assertListed,
  firstPage,
  noon,
  refused,
  states,
  terms,
  toFile,
  toOpen,
  toResolve,
  waysTo,
  workOf,
} from './fixtures.ts';
import type { StoreTests } from './tests.ts';

/** Opening, finding and listing escrow orders. */
export function escrowPromises({ test }: StoreTests): void {
  test('a new order is UNPAID with its terms and a FREEZE, and is found as returned', async (store) => {
    const by = store.gallery;
    const filingNo = await store.fileOne(by);
    const amount = BigInt(Number.MAX_SAFE_INTEGER);
    const given = { ...terms(filingNo), amount, buyerId: ' 买方 \u{1F58C}' };
    const work = workOf(by);
    const { order, ...freeze } = await store.perform(toOpen(by, filingNo, { terms: given, work }));
    const { escrowId } = order;
    assert.match(escrowId, /^ES-2026-[0-9A-Z]{4}$/);
    const prepared = { kind: 'FREEZE', status: 'PREPARED', reason: undefined } as const;
    assert.deepEqual(freeze, { instructionId: work.instructionId, ...prepared });
    assert.deepEqual(order, {
      ...given,
      escrowId,
      state: 'UNPAID',
      pending: 'FREEZE',
      timestamp: noon.timestamp,
      caller: 'gallery',
      holdExpiresAtMs: undefined,
      nextAction: undefined,
      history: [{ state: 'UNPAID', at: noon.timestamp }],
    });
    assert.deepEqual(await store.findEscrow(escrowId, by.callerId), order);
    assert.deepEqual(
      (await store.perform({ kind: 'ListEscrows', filter: anyOrder, page: firstPage(1) })).items,
      [order],
    );
    assert.deepEqual(await store.findInstruction(work.instructionId), {
      ...freeze,
      order,
    });
    assert.deepEqual(await store.perform({ kind: 'FindCase', escrowId }), {
      order,
      holdId: work.instructionId,
      buyer: undefined,
      seller: undefined,
      openedAtMs: noon.atMs,
      reference: undefined,
      failedAttempts: 0,
      review: undefined,
      accepted: undefined,
      notificationCount: 0,
      open: [(await store.caseOf(escrowId)).open[0]],
      lookUpAtMs: noon.atMs + 2_000,
    });
    const { instructionId, kind, status } = freeze;
    assert.partialDeepStrictEqual((await store.caseOf(escrowId)).open, [{ instructionId, kind, status }]);
  });

  test('an order shows its open instruction, and a CANCEL as a REFUND', async (store) => {
    const by = store.gallery;
    const pendingOf = async (id: string) => {
      const [listed] = (await store.perform({ kind: 'ListEscrows', filter: anyOrder, page: firstPage(1) }))
        .items;
      const pending = (await store.findEscrow(id, by.callerId))?.pending;
      assert.deepEqual([listed?.pending, (await store.caseOf(id)).order.pending], [pending, pending]);
      return pending;
    };
    for (const kind of ['RELEASE', 'REFUND'] as const) {
      const { escrowId } = await store.opened(by);
      assert.equal(await pendingOf(escrowId), 'FREEZE');
      await store.settled(escrowId, { to: 'FROZEN' });
      assert.equal(await pendingOf(escrowId), undefined);
      const { order } = await store.perform(toResolve(by, kind, escrowId));
      assert.deepEqual([order.pending, await pendingOf(escrowId)], [kind, kind]);
      await store.settled(escrowId, { to: kind === 'RELEASE' ? 'RELEASED' : 'REFUNDED' });
      assert.equal(await pendingOf(escrowId), undefined);
    }
    const { escrowId } = await store.opened(by);
    const prepared = { kind: 'CANCEL', instructionId: 'cancel-1' } as const;
    await store.settled(escrowId, { ended: [], prepared });
    assert.equal(await pendingOf(escrowId), 'REFUND');
    await store.settled(escrowId, { to: 'CLOSED' });
    assert.equal(await pendingOf(escrowId), undefined);
  });

  test('only the owner of a filing can open an order, unless no owner is given', async (store) => {
    const other = await store.addPlatform('auction house');
    const filingNo = await store.fileOne(store.gallery);
    const open = (number: string, owner: number | undefined) =>
      store.perform(toOpen(other, number, { owner }));
    await refused(open(filingNo, other.callerId), 'PERMISSION_DENIED');
    await refused(open('AS-2026-000002', other.callerId), 'FILING_NOT_FOUND');
    await refused(open('', undefined), 'FILING_NOT_FOUND');
    assert.equal((await open(filingNo, undefined)).order.caller, 'auction house');
  });

  for (const state of states) {
    const active = state === 'UNPAID' || state === 'FROZEN';
    test(`a filing with a ${state} order ${active ? 'cannot' : 'can'} have another order`, async (store) => {
      const { filingNo, escrowId } = await store.orderIn(store.gallery, state);
      const found = await store.findEscrow(escrowId, store.gallery.callerId);
      assert.deepEqual(
        [found?.state, found?.history],
        [state, waysTo[state].map((been) => ({ state: been, at: noon.timestamp }))],
      );
      const again = toOpen(store.gallery, filingNo);
      if (!active) {
        assert.notEqual((await store.perform(again)).order.escrowId, escrowId);
        return;
      }
      await refused(store.perform(again), 'ESCROW_ACTIVE');
      const { instructionId } = again.work;
      assert.equal(await store.findInstruction(instructionId), undefined);
    });
  }

  test('an owner finds only its own orders, and unknown orders and instructions are not found', async (store) => {
    const other = await store.addPlatform('auction house');
    const { escrowId } = await store.opened(store.gallery);
    assert.equal(await store.findEscrow(escrowId, other.callerId), undefined);
    assert.equal((await store.findEscrow(escrowId))?.caller, 'gallery');
    for (const name of ['ES-2026-0000', '', "' OR 1 = 1"]) {
      assert.equal(await store.findEscrow(name), undefined);
      assert.equal(await store.perform({ kind: 'FindCase', escrowId: name }), undefined);
      assert.equal(await store.findInstruction(name), undefined);
    }
  });

  test('escrow ids never repeat and do not reveal the next one', async (store) => {
    const filed = await Promise.all(Array.from({ length: 50 }, () => store.perform(toFile(store.gallery))));
    const orders = await Promise.all(filed.map(({ filingNo }) => store.opened(store.gallery, filingNo)));
    const ids = orders.map(({ escrowId }) => escrowId);
    assert.equal(new Set(ids).size, ids.length);
    const places = ids.map((id) => Number.parseInt(id.slice(-4), 36));
    const steps = places.slice(1).map((place, index) => place - (places[index] ?? 0));
    assert.ok(new Set(steps).size > steps.length / 2, 'ids follow each other by many different steps');
  });

  test('orders are listed by owner, state and filing, alone and combined', async (store) => {
    const mine = store.gallery;
    const other = await store.addPlatform('auction house');
    const filings = [await store.fileOne(mine), await store.fileOne(mine), await store.fileOne(other)];
    const all: { escrowId: string; owner: number; state: string; filingNo: string }[] = [];
    for (const state of ['CLOSED', 'RELEASED', 'CLOSED', 'FROZEN'] as const) {
      for (const [place, filingNo] of filings.entries()) {
        const by = place === 2 ? other : mine;
        // Of the last ones, one stays UNPAID.
        const isUnpaid = state === 'FROZEN' && place === 1;
        const { escrowId } = await store.opened(by, filingNo);
        if (state === 'CLOSED') await store.settled(escrowId, { to: 'CLOSED' });
        else if (!isUnpaid) await store.settled(escrowId, { to: 'FROZEN' });
        if (state === 'RELEASED') {
          await store.perform(toResolve(by, 'RELEASE', escrowId, { owner: by.callerId }));
          await store.settled(escrowId, { to: 'RELEASED' });
        }
        all.unshift({ escrowId, owner: by.callerId, state: isUnpaid ? 'UNPAID' : state, filingNo });
      }
    }
    for (const owner of [undefined, mine.callerId, other.callerId, 99]) {
      for (const state of [undefined, ...states]) {
        for (const filingNo of [undefined, ...filings, 'AS-2026-000099', '']) {
          const expected = all
            .filter((order) => owner === undefined || order.owner === owner)
            .filter((order) => state === undefined || order.state === state)
            .filter((order) => filingNo === undefined || order.filingNo === filingNo)
            .map(({ escrowId }) => escrowId);
          const filter = { owner, state, filingNo };
          const list = (page: PageQuery) => store.perform({ kind: 'ListEscrows', filter, page });
          await assertListed(list, ({ escrowId }) => escrowId, expected, [2]);
        }
      }
    }
  });

  test('each order of a list has its own history', async (store) => {
    for (const state of states) await store.orderIn(store.gallery, state);
    const { items } = await store.perform({
      kind: 'ListEscrows',
      filter: anyOrder,
      page: firstPage(10),
    });
    assert.deepEqual(
      items.map(({ state, history }) => [state, history.map((been) => been.state)]),
      states.map((state) => [state, waysTo[state]]).reverse(),
    );
  });
}
