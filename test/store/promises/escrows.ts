import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { EscrowMove, EscrowState } from '../../../src/domain/escrow.ts';
import type { CallerRef, Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  allPages,
  fileOne,
  fulfilledOf,
  noon,
  openStore,
  painting,
  refused,
  type StoreEngine,
  terms,
  time,
} from './fixtures.ts';

/** The moves that lead to each state that an order can be in. */
const pathTo: readonly (readonly [EscrowState, readonly EscrowMove[]])[] = [
  ['UNPAID', []],
  ['FROZEN', ['frozen']],
  ['CLOSED', ['declined']],
  ['RELEASED', ['frozen', 'released']],
];
const moves: readonly EscrowMove[] = ['frozen', 'declined', 'released'];
const allowed: readonly string[] = [
  'UNPAID frozen FROZEN',
  'UNPAID declined CLOSED',
  'FROZEN released RELEASED',
];

async function openOrder(store: Store, by: CallerRef, path: readonly EscrowMove[]) {
  const filingNo = await fileOne(store, by);
  const { escrowId } = await store.escrows.open(terms(filingNo), noon, by, by.callerId);
  for (const move of path) await store.escrows.move(escrowId, move, noon);
  return { filingNo, escrowId };
}

const transfersOf = async (store: Store, filingNo: string) =>
  (await store.filings.provenance(filingNo))?.records.filter(({ event }) => event === 'TRANSFER').length;

/** Escrow orders. */
export function escrowPromises(engine: StoreEngine): void {
  test('an order opens UNPAID, is answered with its terms and found as answered', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const filingNo = await fileOne(store, by);
    const asked = { ...terms(filingNo), amount: BigInt(Number.MAX_SAFE_INTEGER), buyerId: ' 买方 \u{1F58C}' };
    const order = await store.escrows.open(asked, noon, by, by.callerId);
    const { escrowId } = order;
    assert.match(escrowId, /^ES-2026-[0-9A-Z]{4}$/);
    assert.deepEqual(order, {
      ...asked,
      escrowId,
      state: 'UNPAID',
      timestamp: noon.timestamp,
      caller: 'gallery',
    });
    assert.deepEqual(await store.escrows.find(escrowId, by.callerId), order);
  });

  test('only the caller that filed may open an order; without an owner anybody may', async (t) => {
    const store = await openStore(t, engine);
    const mine = await addPlatform(store, 'gallery');
    const other = await addPlatform(store, 'auction house');
    const filingNo = await fileOne(store, mine);
    await refused(store.escrows.open(terms(filingNo), noon, other, other.callerId), 'PERMISSION_DENIED');
    await refused(
      store.escrows.open(terms('AS-2026-000002'), noon, other, other.callerId),
      'FILING_NOT_FOUND',
    );
    await refused(store.escrows.open(terms(''), noon, other, undefined), 'FILING_NOT_FOUND');
    assert.equal((await store.escrows.open(terms(filingNo), noon, other, undefined)).caller, 'auction house');
  });

  for (const [state, path] of pathTo) {
    const open = state === 'UNPAID' || state === 'FROZEN';
    test(`an order that is ${state} ${open ? 'keeps others from' : 'lets another one'} opening`, async (t) => {
      const store = await openStore(t, engine);
      const by = await addPlatform(store, 'gallery');
      const { filingNo, escrowId } = await openOrder(store, by, path);
      const again = store.escrows.open(terms(filingNo), noon, by, by.callerId);
      if (open) await refused(again, 'ESCROW_ACTIVE');
      else assert.notEqual((await again).escrowId, escrowId);
    });

    for (const move of moves) {
      const lead = allowed.find((entry) => entry.startsWith(`${state} ${move} `));
      test(`${move} of an order that is ${state} ${lead ? 'is made' : 'is a conflict'}`, async (t) => {
        const store = await openStore(t, engine);
        const by = await addPlatform(store, 'gallery');
        const { filingNo, escrowId } = await openOrder(store, by, path);
        const transfers = await transfersOf(store, filingNo);
        if (lead === undefined) {
          await refused(store.escrows.move(escrowId, move, noon), 'ESCROW_STATE_CONFLICT');
          assert.equal((await store.escrows.find(escrowId, undefined))?.state, state);
          assert.equal(await transfersOf(store, filingNo), transfers);
        } else {
          const moved = await store.escrows.move(escrowId, move, noon);
          assert.equal(`${state} ${move} ${moved.state}`, lead);
          assert.deepEqual(await store.escrows.find(escrowId, undefined), moved);
          assert.equal(await transfersOf(store, filingNo), move === 'released' ? 1 : 0);
        }
      });
    }
  }

  test('a move of no order is refused', async (t) => {
    const store = await openStore(t, engine);
    for (const move of moves) {
      await refused(store.escrows.move('ES-2026-0000', move, noon), 'ESCROW_NOT_FOUND');
    }
  });

  test('of orders opened at once for one filing, one is stored', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const filingNo = await fileOne(store, by);
    const calls = [1, 2, 3, 4].map(() => store.escrows.open(terms(filingNo), noon, by, by.callerId));
    assert.equal(await fulfilledOf(calls, 'ESCROW_ACTIVE'), 1);
    await store.durable();
    assert.equal((await store.escrows.list(undefined, { from: undefined, size: 10 })).items.length, 1);
  });

  test('of moves made at once from one state, one is made, and one TRANSFER is appended', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { filingNo, escrowId } = await openOrder(store, by, ['frozen']);
    const calls = [1, 2, 3, 4].map(() => store.escrows.move(escrowId, 'released', noon));
    assert.equal(await fulfilledOf(calls, 'ESCROW_STATE_CONFLICT'), 1);
    await store.durable();
    assert.equal(await transfersOf(store, filingNo), 1);
  });

  test('two open stores on one folder make one move and open one order', async (t) => {
    const dataDir = temporaryFolder(t);
    const [one, other] = [await openStore(t, engine, dataDir), await openStore(t, engine, dataDir)];
    const by = await addPlatform(one, 'gallery');
    const { filingNo, escrowId } = await openOrder(one, by, ['frozen']);
    await one.durable();
    await refused(other.escrows.open(terms(filingNo), noon, by, by.callerId), 'ESCROW_ACTIVE');
    await other.durable();
    await one.escrows.move(escrowId, 'released', noon);
    await one.durable();
    await refused(other.escrows.move(escrowId, 'released', noon), 'ESCROW_STATE_CONFLICT');
    await other.durable();
    assert.equal(await transfersOf(other, filingNo), 1);
    await other.escrows.open(terms(filingNo), noon, by, by.callerId);
    await other.durable();
    await refused(one.escrows.open(terms(filingNo), noon, by, by.callerId), 'ESCROW_ACTIVE');
  });

  test('a TRANSFER is dated by its release, where the business is done', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { filingNo, escrowId } = await openOrder(store, by, ['frozen']);
    await store.escrows.move(escrowId, 'released', time('2026-12-02T00:30:00+08:00'));
    const provenance = await store.filings.provenance(filingNo);
    assert.deepEqual(provenance?.records.at(-1), { event: 'TRANSFER', at: '2026-12-02' });
  });

  test('escrow ids never repeat and do not tell the next one', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const filed = await Promise.all(
      Array.from({ length: 200 }, () => store.filings.file(painting, noon, by)),
    );
    const orders = await Promise.all(
      filed.map(({ filingNo }) => store.escrows.open(terms(filingNo), noon, by, by.callerId)),
    );
    const ids = orders.map(({ escrowId }) => escrowId);
    assert.equal(new Set(ids).size, ids.length);
    const places = ids.map((id) => Number.parseInt(id.slice(-4), 36));
    const steps = places.slice(1).map((place, index) => place - (places[index] ?? 0));
    assert.ok(new Set(steps).size > steps.length / 2, 'ids follow each other by many different steps');
  });

  test('an owner finds and lists its own orders alone, newest first; no owner all', async (t) => {
    const store = await openStore(t, engine);
    const mine = await addPlatform(store, 'gallery');
    const other = await addPlatform(store, 'auction house');
    const ids: string[] = [];
    for (const by of [mine, other, mine, other, mine]) ids.push((await openOrder(store, by, [])).escrowId);
    const newestFirst = ids.toReversed();
    const idsOf = async (owner: number | undefined, size: number) =>
      (await allPages((page) => store.escrows.list(owner, page), size)).map((page) =>
        page.map(({ escrowId }) => escrowId),
      );
    const [e = '', d = '', c = '', b = '', a = ''] = newestFirst;
    assert.deepEqual(await idsOf(undefined, 2), [[e, d], [c, b], [a]]);
    assert.deepEqual(await idsOf(undefined, 5), [newestFirst]);
    assert.deepEqual(await idsOf(mine.callerId, 2), [[e, c], [a]]);
    assert.deepEqual(await idsOf(other.callerId, 2), [[d, b]]);
    assert.equal(await store.escrows.find(e, other.callerId), undefined);
    assert.equal((await store.escrows.find(e, mine.callerId))?.escrowId, e);
    assert.equal((await store.escrows.find(e, undefined))?.caller, 'gallery');
    assert.equal(await store.escrows.find('ES-2026-', undefined), undefined);
  });
}
