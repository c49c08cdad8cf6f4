import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Store } from '../../../src/store/store.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import {
  addPlatform,
  anyFiling,
  anyOrder,
  caseOf,
  crashCopy,
  fileOne,
  frozen,
  inNeed,
  newKey,
  newToken,
  noon,
  openStore,
  painting,
  refused,
  type StoreEngine,
  settled,
  terms,
  workOf,
} from './fixtures.ts';

/** The filings that a store opened on this folder has, oldest first. */
async function filingsIn(store: Store): Promise<string[]> {
  const { items } = await store.filings.list(anyFiling, { from: undefined, size: 100 });
  return items.map(({ filingNo }) => filingNo).reverse();
}

const somebody = { callerId: 1, caller: 'gallery' };
const work = workOf(somebody);
const anyPage = { from: undefined, size: 1 };
const nothingToSettle = {
  escrowId: 'ES-2026-0000',
  from: 'UNPAID',
  to: 'FROZEN',
  ended: [],
  prepared: undefined,
  reference: undefined,
  attention: undefined,
  isHeard: true,
  notices: 0,
  lookUpAtMs: undefined,
} as const;

/** Each verb that only reads, as a call. */
const reads: Record<string, (store: Store) => Promise<unknown>> = {
  findKey: ({ admission }) => admission.findKey('ak'),
  findToken: ({ admission }) => admission.findToken(new Uint8Array(32)),
  callsIn: ({ admission }) => admission.callsIn(1, '2026-11'),
  isEmpty: ({ callers }) => callers.isEmpty(),
  listKeys: ({ callers }) => callers.listKeys(anyPage),
  findPlatform: ({ callers }) => callers.findPlatform('gallery'),
  listPlatforms: ({ callers }) => callers.listPlatforms(anyPage),
  listTokens: ({ callers }) => callers.listTokens(anyPage),
  'filings.find': ({ filings }) => filings.find('AS-2026-000001', undefined),
  'filings.list': ({ filings }) => filings.list(anyFiling, anyPage),
  provenance: ({ filings }) => filings.provenance('AS-2026-000001'),
  'escrows.find': ({ escrows }) => escrows.find('ES-2026-0000', undefined),
  'escrows.list': ({ escrows }) => escrows.list(anyOrder, anyPage),
  listCases: ({ escrows }) => escrows.listCases(inNeed, anyPage),
  findCase: ({ escrows }) => escrows.findCase('ES-2026-0000'),
  findOperation: ({ escrows }) => escrows.findOperation('op'),
  due: ({ escrows }) => escrows.due(0, 1, 1),
};

/** Each verb that has an effect, as a call. */
const writes: Record<string, (store: Store) => Promise<unknown>> = {
  claimNonce: ({ admission }) => admission.claimNonce({ keyId: 1, nonce: 'n', nowS: 1_790_000_000 }),
  countCall: ({ admission }) => admission.countCall(1, '2026-11'),
  addPlatform: (store) => addPlatform(store, 'auction house'),
  rotateKey: ({ callers }) => callers.rotateKey('key', newKey(), 1_790_000_000),
  setKeyStatus: ({ callers }) => callers.setKeyStatus('key', 'SUSPENDED'),
  setPlatformStatus: ({ callers }) => callers.setPlatformStatus('gallery', 'SUSPENDED'),
  addToken: ({ callers }) => callers.addToken('ledger', newToken()),
  revokeToken: ({ callers }) => callers.revokeToken('tok', 1_790_000_000),
  file: ({ filings }) => filings.file(painting, noon, somebody),
  open: ({ escrows }) => escrows.open(terms('AS-2026-000001'), noon, work, undefined),
  prepare: ({ escrows }) => escrows.prepare('RELEASE', 'ES-2026-0000', noon, work, undefined),
  send: ({ escrows }) => escrows.send('op', 1),
  leaveOpen: ({ escrows }) => escrows.leaveOpen('ES-2026-0000', 1, 0),
  settle: ({ escrows }) => escrows.settle(nothingToSettle, noon),
  resume: ({ escrows }) => escrows.resume(1),
  notified: ({ escrows }) => escrows.notified('event', 'op', 1),
  decide: ({ escrows }) => escrows.decide('ES-2026-0000', 'ACCEPT', 'op', 1),
  'idempotency.claim': ({ idempotency }) =>
    idempotency.claim({
      callerId: 1,
      key: 'k',
      fingerprint: new Uint8Array(32),
      nowS: 1_790_000_000,
    }),
  keep: ({ idempotency }) => idempotency.keep(1, 'k', { status: 200, body: '{}' }),
  release: ({ idempotency }) => idempotency.release(1, 'k'),
};

/** What survives, and what a closed store does. */
export function durabilityPromises(engine: StoreEngine): void {
  test('an effect survives a crash once durable() has resolved, and not before', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    await store.durable();
    await store.filings.file(painting, noon, by);
    const before = crashCopy(t, dataDir);
    await store.durable();
    const after = crashCopy(t, dataDir);
    assert.deepEqual(await filingsIn(await openStore(t, engine, before)), []);
    assert.deepEqual(await filingsIn(await openStore(t, engine, after)), ['AS-2026-000001']);
  });

  test('a crash before durable() loses nothing older, and the numbers go on from there', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const { escrowId, filingNo } = await frozen(store, by);
    const { operationId } = await store.escrows.prepare('RELEASE', escrowId, noon, workOf(by), by.callerId);
    await store.durable();
    await settled(store, escrowId, { to: 'RELEASED', reference: 'theirs' });
    await store.filings.file(painting, noon, by);
    const crashed = await openStore(t, engine, crashCopy(t, dataDir));
    assert.equal((await crashed.escrows.findOperation(operationId))?.status, 'PREPARED');
    assert.equal((await caseOf(crashed, escrowId)).reference, undefined);
    assert.equal((await crashed.escrows.find(escrowId, undefined))?.state, 'FROZEN');
    assert.equal((await crashed.filings.provenance(filingNo))?.records.length, 1);
    assert.equal(await fileOne(crashed, by), 'AS-2026-000002');
  });

  test('a verb sees all effects before it, durable or not', async (t) => {
    const store = await openStore(t, engine);
    const by = await addPlatform(store, 'gallery');
    const { filingNo } = await store.filings.file(painting, noon, by);
    assert.equal((await store.filings.find(filingNo, by.callerId))?.caller, 'gallery');
    assert.equal((await store.filings.provenance(filingNo))?.records.length, 1);
  });

  test('effects that wait for nothing but each other become durable together', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    await store.durable();
    for (let count = 0; count < 3; count += 1) {
      await store.idempotency.claim({
        callerId: by.callerId,
        key: String(count),
        fingerprint: new Uint8Array(32),
        nowS: 1_790_000_000,
      });
      await store.filings.file(painting, noon, by);
      await store.idempotency.keep(by.callerId, String(count), { status: 200, body: '{}' });
    }
    const before = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(await filingsIn(before), []);
    await store.durable();
    const after = await openStore(t, engine, crashCopy(t, dataDir));
    assert.equal((await filingsIn(after)).length, 3);
  });

  test('durable() resolves when there is nothing to make durable', async (t) => {
    const store = await openStore(t, engine);
    await store.durable();
    await store.durable();
  });

  test('an effect that fails leaves the others of its turn alone', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    const filed = store.filings.file(painting, noon, by);
    const failed = refused(store.escrows.settle(nothingToSettle, noon), 'ESCROW_NOT_FOUND');
    const claimed = store.admission.claimNonce({ keyId: by.id, nonce: 'n', nowS: 1_790_000_000 });
    await Promise.all([filed, failed, claimed]);
    await store.durable();
    const crashed = await openStore(t, engine, crashCopy(t, dataDir));
    assert.deepEqual(await filingsIn(crashed), ['AS-2026-000001']);
    assert.equal(
      await crashed.admission.claimNonce({ keyId: by.id, nonce: 'n', nowS: 1_790_000_000 }),
      false,
    );
  });

  test('closing makes all effects durable', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    await store.filings.file(painting, noon, by);
    await store.close();
    assert.deepEqual(await filingsIn(await openStore(t, engine, crashCopy(t, dataDir))), ['AS-2026-000001']);
  });

  for (const [name, call] of Object.entries({ ...writes, ...reads })) {
    test(`a closed store refuses ${name} with UNAVAILABLE`, async (t) => {
      const store = await openStore(t, engine);
      await store.close();
      await refused(call(store), 'UNAVAILABLE');
    });
  }

  test('effects called while the store closes are kept, or refused with UNAVAILABLE', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const by = await addPlatform(store, 'gallery');
    await store.durable();
    const closed = store.close();
    const late = store.filings
      .file(painting, noon, by)
      .then(() => store.durable())
      .then(
        () => ['AS-2026-000001'],
        (error) => refused(Promise.reject(error), 'UNAVAILABLE').then(() => []),
      );
    await closed;
    assert.deepEqual(await filingsIn(await openStore(t, engine, dataDir)), await late);
  });

  test('many effects of one turn are all kept', async (t) => {
    const dataDir = temporaryFolder(t);
    const store = await openStore(t, engine, dataDir);
    const places = Array.from({ length: 5_000 }, (_, place) => String(place));
    const claim = (nonce: string) => store.admission.claimNonce({ keyId: 1, nonce, nowS: 1_790_000_000 });
    const claimed = await Promise.all(places.map(claim));
    await store.durable();
    assert.ok(claimed.every(Boolean));
    assert.ok((await Promise.all(places.map(claim))).every((granted) => !granted));
  });
}
