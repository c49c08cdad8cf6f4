import assert from 'node:assert/strict';
import { test } from 'node:test';
import { perform, type Store } from '../../../src/store/store.ts';
import {
  addPlatform,
  allPages,
  anyOrder,
  caseOf,
  fileOne,
  findEscrow,
  findInstruction,
  firstPage,
  frozen,
  noon,
  opened,
  openGallery,
  openOrder,
  openPair,
  openStore,
  orderIn,
  refused,
  type StoreEngine,
  settled,
  states,
  terms,
  toFile,
  toOpen,
  toResolve,
  waysTo,
  workOf,
} from './fixtures.ts';

/** The ids that a list shows, page by page. */
const idsOf = async (store: Store, filter: Partial<typeof anyOrder>, size: number) =>
  (
    await allPages(
      (page) => perform(store, { kind: 'ListEscrows', filter: { ...anyOrder, ...filter }, page }),
      size,
    )
  ).map((page) => page.map(({ escrowId }) => escrowId));

/** Opening, finding and listing escrow orders. */
export function escrowPromises(engine: StoreEngine): void {
  test('a new order is UNPAID with its terms and a FREEZE, and is found as returned', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filingNo = await fileOne(store, by);
    const amount = BigInt(Number.MAX_SAFE_INTEGER);
    const given = { ...terms(filingNo), amount, buyerId: ' 买方 \u{1F58C}' };
    const work = workOf(by);
    const { order, ...freeze } = await perform(store, toOpen(by, filingNo, { terms: given, work }));
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
    assert.deepEqual(await findEscrow(store, escrowId, by.callerId), order);
    assert.deepEqual(
      (await perform(store, { kind: 'ListEscrows', filter: anyOrder, page: firstPage(1) })).items,
      [order],
    );
    assert.deepEqual(await findInstruction(store, work.instructionId), {
      ...freeze,
      order,
    });
    assert.deepEqual(await perform(store, { kind: 'FindCase', escrowId }), {
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
      open: [(await caseOf(store, escrowId)).open[0]],
    });
    const { instructionId, kind, status } = freeze;
    assert.partialDeepStrictEqual((await caseOf(store, escrowId)).open, [{ instructionId, kind, status }]);
  });

  test('an order shows its open instruction, and a CANCEL as a REFUND', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const pendingOf = async (id: string) => {
      const [listed] = (await perform(store, { kind: 'ListEscrows', filter: anyOrder, page: firstPage(1) }))
        .items;
      const pending = (await findEscrow(store, id, by.callerId))?.pending;
      assert.deepEqual([listed?.pending, (await caseOf(store, id)).order.pending], [pending, pending]);
      return pending;
    };
    for (const kind of ['RELEASE', 'REFUND'] as const) {
      const { escrowId } = await opened(store, by);
      assert.equal(await pendingOf(escrowId), 'FREEZE');
      await settled(store, escrowId, { to: 'FROZEN' });
      assert.equal(await pendingOf(escrowId), undefined);
      const { order } = await perform(store, toResolve(by, kind, escrowId));
      assert.deepEqual([order.pending, await pendingOf(escrowId)], [kind, kind]);
      await settled(store, escrowId, { to: kind === 'RELEASE' ? 'RELEASED' : 'REFUNDED' });
      assert.equal(await pendingOf(escrowId), undefined);
    }
    const { escrowId } = await opened(store, by);
    const prepared = { kind: 'CANCEL', instructionId: 'cancel-1' } as const;
    await settled(store, escrowId, { ended: [], prepared });
    assert.equal(await pendingOf(escrowId), 'REFUND');
    await settled(store, escrowId, { to: 'CLOSED' });
    assert.equal(await pendingOf(escrowId), undefined);
  });

  test('only the owner of a filing can open an order, unless no owner is given', async (t) => {
    const { store, by: mine } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const filingNo = await fileOne(store, mine);
    const open = (number: string, owner: number | undefined) =>
      perform(store, toOpen(other, number, { owner }));
    await refused(open(filingNo, other.callerId), 'PERMISSION_DENIED');
    await refused(open('AS-2026-000002', other.callerId), 'FILING_NOT_FOUND');
    await refused(open('', undefined), 'FILING_NOT_FOUND');
    assert.equal((await open(filingNo, undefined)).order.caller, 'auction house');
  });

  for (const state of states) {
    const active = state === 'UNPAID' || state === 'FROZEN';
    test(`a filing with a ${state} order ${active ? 'cannot' : 'can'} have another order`, async (t) => {
      const { store, by, filingNo, escrowId } = await openOrder(t, engine, state);
      const found = await findEscrow(store, escrowId, by.callerId);
      assert.deepEqual(
        [found?.state, found?.history],
        [state, waysTo[state].map((been) => ({ state: been, at: noon.timestamp }))],
      );
      const again = toOpen(by, filingNo);
      if (!active) {
        assert.notEqual((await perform(store, again)).order.escrowId, escrowId);
        return;
      }
      await refused(perform(store, again), 'ESCROW_ACTIVE');
      const { instructionId } = again.work;
      assert.equal(await findInstruction(store, instructionId), undefined);
    });
  }

  test('unknown orders and instructions are not found', async (t) => {
    const store = await openStore(t, engine);
    for (const name of ['ES-2026-0000', '', "' OR 1 = 1"]) {
      assert.equal(await findEscrow(store, name), undefined);
      assert.equal(await perform(store, { kind: 'FindCase', escrowId: name }), undefined);
      assert.equal(await findInstruction(store, name), undefined);
    }
  });

  test('two open stores open one order for a filing at a time', async (t) => {
    const [one, other] = await openPair(t, engine);
    const by = await addPlatform(one, 'gallery');
    const { filingNo, escrowId } = await opened(one, by);
    await refused(opened(other, by, filingNo), 'ESCROW_ACTIVE');
    await settled(one, escrowId, { to: 'CLOSED' });
    await opened(other, by, filingNo);
    await refused(opened(one, by, filingNo), 'ESCROW_ACTIVE');
  });

  test('escrow ids never repeat and do not reveal the next one', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const filed = await Promise.all(Array.from({ length: 50 }, () => perform(store, toFile(by))));
    const orders = await Promise.all(filed.map(({ filingNo }) => opened(store, by, filingNo)));
    const ids = orders.map(({ escrowId }) => escrowId);
    assert.equal(new Set(ids).size, ids.length);
    const places = ids.map((id) => Number.parseInt(id.slice(-4), 36));
    const steps = places.slice(1).map((place, index) => place - (places[index] ?? 0));
    assert.ok(new Set(steps).size > steps.length / 2, 'ids follow each other by many different steps');
  });

  test('an owner finds only its own orders', async (t) => {
    const { store, by: mine } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const { escrowId } = await opened(store, mine);
    assert.equal(await findEscrow(store, escrowId, other.callerId), undefined);
    assert.equal((await findEscrow(store, escrowId, mine.callerId))?.escrowId, escrowId);
    assert.equal((await findEscrow(store, escrowId))?.caller, 'gallery');
    assert.equal(await findEscrow(store, 'ES-2026-'), undefined);
  });

  test('orders are listed by owner, state and filing, alone and combined', async (t) => {
    const { store, by: mine } = await openGallery(t, engine);
    const other = await addPlatform(store, 'auction house');
    const filings = [await fileOne(store, mine), await fileOne(store, mine), await fileOne(store, other)];
    const all: { escrowId: string; owner: number; state: string; filingNo: string }[] = [];
    for (const state of ['CLOSED', 'RELEASED', 'CLOSED', 'FROZEN'] as const) {
      for (const [place, filingNo] of filings.entries()) {
        const by = place === 2 ? other : mine;
        // Of the last ones, one stays UNPAID.
        const isUnpaid = state === 'FROZEN' && place === 1;
        const { escrowId } = await opened(store, by, filingNo);
        if (state === 'CLOSED') await settled(store, escrowId, { to: 'CLOSED' });
        else if (!isUnpaid) await settled(store, escrowId, { to: 'FROZEN' });
        if (state === 'RELEASED') {
          await perform(store, toResolve(by, 'RELEASE', escrowId, { owner: by.callerId }));
          await settled(store, escrowId, { to: 'RELEASED' });
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
          const pages = await idsOf(store, { owner, state, filingNo }, 2);
          assert.deepEqual(pages.flat(), expected, `${owner} ${state} ${filingNo}`);
          assert.equal(pages.length, Math.max(1, Math.ceil(expected.length / 2)));
        }
      }
    }
  });

  test('each order of a list has its own history', async (t) => {
    const { store, by } = await openGallery(t, engine);
    for (const state of states) await orderIn(store, by, state);
    const { items } = await perform(store, {
      kind: 'ListEscrows',
      filter: anyOrder,
      page: firstPage(10),
    });
    assert.deepEqual(
      items.map(({ state, history }) => [state, history.map((been) => been.state)]),
      states.map((state) => [state, waysTo[state]]).reverse(),
    );
  });

  test('an order that is opened between two pages does not move the second one', async (t) => {
    const { store, by } = await openGallery(t, engine);
    const ids: string[] = [];
    for (let count = 0; count < 4; count += 1) ids.push((await frozen(store, by)).escrowId);
    const filter = { ...anyOrder, state: 'FROZEN' } as const;
    const first = await perform(store, { kind: 'ListEscrows', filter, page: firstPage(2) });
    await frozen(store, by);
    const second = await perform(store, { kind: 'ListEscrows', filter, page: { from: first.next, size: 2 } });
    assert.deepEqual(
      [...first.items, ...second.items].map(({ escrowId }) => escrowId),
      ids.reverse(),
    );
    assert.equal(second.next, undefined);
  });
}
