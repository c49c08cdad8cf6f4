import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { rowsPerQuery, selectRows } from '../../src/store/postgres/leaf-rows.ts';
import { endSession } from '../../src/store/postgres/line.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { eventually } from '../support/eventually.ts';
import { runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { cutConnection, endSessions, loseFiling, openDatabase, withoutTriggers } from './postgres-stores.ts';
import { addPlatform, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const by = { callerId: 1, caller: 'gallery' };
/** Long enough for a machine that does much else. */
const limitMs = 60_000;
/** The leaves of a tile of the tree. */
const tileLeaves = 256;

const fileOne = (store: Store) => perform(store, toFile(by));

/** Files until it succeeds. */
const fileAtLast = (store: Store) =>
  eventually('a filing', limitMs, () => fileOne(store).catch(() => undefined));

const inNewSession = (store: Store) =>
  eventually('a new session', limitMs, () => store.findFault() === undefined);

/** Calls `work` before the next query of this kind is sent. Returns whether it was. */
function before(
  t: TestContext,
  isIt: (query: unknown) => boolean,
  work: (client: pg.Client) => void,
): () => boolean {
  const { query } = pg.Client.prototype;
  let isDone = false;
  t.after(() => Object.assign(pg.Client.prototype, { query }));
  function intercepted(this: pg.Client, ...args: unknown[]) {
    if (!isDone && isIt(args[0])) {
      isDone = true;
      work(this);
    }
    return Reflect.apply(query, this, args);
  }
  Object.assign(pg.Client.prototype, { query: intercepted });
  return () => isDone;
}

test('an instance writes nothing to a database that lost its newest leaf, although another one has filed since', {
  skip,
}, async (t) => {
  const { url, open } = await openDatabase(t);
  const [one, other] = [await open(), await open()];
  await fileOne(one);
  await fileOne(other);
  const { filingNo: lost } = await fileOne(one);
  await runSql(url, ...loseFiling(lost));
  assert.equal((await fileAtLast(other)).filingNo, lost);
  // More than it reads under the fence.
  for (let nth = 0; nth < rowsPerQuery; nth += 1) await fileOne(other);
  await inNewSession(one);
  for (let nth = 0; nth < 2; nth += 1) await assert.rejects(fileOne(one), { reason: 'RECORD_DAMAGED' });
  await fileOne(other);
});

test('an instance that knows a lost leaf does not lead', { skip }, async (t) => {
  const { url, open, openAs } = await openDatabase(t);
  const [one, other] = [await openAs('one'), await open()];
  assert.equal(one.instances?.isLeading(), true);
  await fileOne(other);
  const { filingNo: lost } = await fileOne(one);
  await runSql(url, ...loseFiling(lost));
  await inNewSession(one);
  await eventually('a rejected filing', limitMs, () =>
    fileOne(one).then(
      () => assert.fail('The filing has succeeded.'),
      (error) => error.reason === 'RECORD_DAMAGED',
    ),
  );
  assert.equal(one.instances?.isLeading(), false);
});

test('an instance rejects a database that lost a change of credentials', { skip }, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const store = await openAs('one');
  const { keyId } = await addPlatform(store, 'second');
  await perform(store, { kind: 'SetKeyStatus', by: tester, keyId, status: 'REVOKED' });
  await fileOne(store);
  await runSql(
    url,
    ...withoutTriggers('audit_entry', 'DELETE FROM audit_entry WHERE id = (SELECT max(id) FROM audit_entry)'),
    endSessions,
  );
  await inNewSession(store);
  await assert.rejects(fileOne(store), { reason: 'RECORD_DAMAGED' });
});

test('credentials are read in each new session', { skip }, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const store = await openAs('one');
  const { apiKey } = await addPlatform(store, 'second');
  await fileOne(store);
  assert.equal(store.findKey(apiKey)?.status, 'ACTIVE');
  await runSql(url, `UPDATE api_key SET status = 'REVOKED'`, endSessions);
  await fileAtLast(store);
  assert.equal(store.findKey(apiKey)?.status, 'REVOKED');
});

test('filings that waited for a session are stored although another instance has filed for 20 seconds', {
  skip,
}, async (t) => {
  const lost = Promise.withResolvers<void>();
  const othersHaveFiled = Promise.withResolvers<void>();
  // Stores close only then.
  t.after(() => othersHaveFiled.resolve());
  const { open } = await openDatabase(t);
  const [one, other] = [await open(), await open()];
  await fileOne(one);
  const { atMs } = toFile(by).at;
  const later = { atMs: atMs + 20_000, timestamp: '2026-11-21T12:00:20+00:00' };
  const { connect } = pg.Client.prototype;
  t.after(() => Object.assign(pg.Client.prototype, { connect }));
  before(
    t,
    (query) => query === 'COMMIT',
    (client) => {
      async function connectLate(this: pg.Client) {
        await othersHaveFiled.promise;
        return Reflect.apply(connect, this, []);
      }
      Object.assign(pg.Client.prototype, { connect: connectLate });
      cutConnection(client);
      lost.resolve();
    },
  );
  const filing = fileOne(one);
  await lost.promise;
  // It waits for the end of the first one.
  const queued = fileOne(one);
  await perform(other, toFile(by, later));
  othersHaveFiled.resolve();
  for (const filed of [filing, queued]) assert.equal((await filed).timestamp, later.timestamp);
});

test('a session that ends while it is prepared is replaced', { skip }, async (t) => {
  const { url, openAs } = await openDatabase(t);
  const store = await openAs('one');
  const wasCut = before(t, (query) => query === endSession, cutConnection);
  await runSql(url, endSessions);
  await fileAtLast(store);
  assert.ok(wasCut());
});

test('a store that has read only some leaves of others continues', { skip }, async (t) => {
  const { open } = await openDatabase(t);
  const other = await open();
  for (let nth = 1; nth < tileLeaves; nth += 1) await fileOne(other);
  const store = await open();
  await perform(store, { kind: 'GetTree' });
  for (let nth = 0; nth < 3 * tileLeaves; nth += 1) await fileOne(other);
  const wasCut = before(t, (query) => (query as { name?: string }).name === selectRows.name, cutConnection);
  await fileAtLast(store);
  assert.ok(wasCut());
  await fileOne(other);
  await fileOne(store);
});
