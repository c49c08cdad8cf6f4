import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import pg from 'pg';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import type { Command, Store } from '../../src/store/store.ts';
import {
  createDatabase,
  type PostgresCluster,
  runSql,
  skipUnlessPostgres,
  startCluster,
} from '../support/postgres.ts';
import { endSessions, withoutTriggers } from './postgres-stores.ts';
import { addPlatform, anyFiling, sandbox, toFile } from './promises/fixtures.ts';

const skip = skipUnlessPostgres();
const kills = Number(process.env.ARTSEAL_TEST_KILLS ?? 5);
const by = { callerId: 1, caller: 'gallery' };

async function openGallery(t: TestContext, settings: Readonly<Record<string, string>> = {}) {
  const cluster = await startCluster(t, { fsync: true, settings });
  const url = await createDatabase(t, { cluster });
  const store = await openPostgresStore({ place: { url }, ...sandbox });
  t.after(() => store.close());
  await addPlatform(store, 'gallery');
  return { cluster, url, store };
}

/** Files until it is stopped, so much at once that batches are read ahead. Returns the numbers that were answered. */
function fileUntilStopped(store: Store) {
  const answered: string[] = [];
  let isStopped = false;
  const workers = Array.from({ length: 96 }, async () => {
    while (!isStopped) {
      const filed = await store.execute({ effect: toFile(by) }).catch(() => undefined);
      if (filed?.outcome.kind === 'DONE') answered.push(filed.outcome.result.filingNo);
      else await new Promise((resolve) => setTimeout(resolve, 5));
    }
  });
  return {
    answered,
    stop: async () => {
      isStopped = true;
      await Promise.all(workers);
    },
  };
}

function fileOf(author: string): Command<'FileArtwork'> {
  const command = toFile(by);
  return { ...command, artwork: { ...command.artwork, author } };
}

/** Makes PostgreSQL reject filings of the author 'unlucky'. */
const failUnlucky = (url: string) =>
  runSql(
    url,
    `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'unlucky'; END $$`,
    `CREATE TRIGGER unlucky AFTER INSERT ON filing FOR EACH ROW WHEN (NEW.author = 'unlucky')
      EXECUTE FUNCTION fail()`,
  );

async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** All numbers that are stored, in their order. */
const storedIn = async (url: string): Promise<string[]> =>
  (await runSql<{ filing_no: string }>(url, 'SELECT filing_no FROM filing ORDER BY 1')).map(
    ({ filing_no }) => filing_no,
  );

const numbered = (count: number): string[] =>
  Array.from({ length: count }, (_, nth) => `AS-2026-${String(nth + 1).padStart(6, '0')}`);

/** Kills PostgreSQL under load and starts it again, so many times. */
async function killUnderLoad(cluster: PostgresCluster, store: Store) {
  const { answered, stop } = fileUntilStopped(store);
  for (let killed = 0; killed < kills; killed += 1) {
    const before = answered.length;
    await until(() => answered.length > before + 20);
    await cluster.kill();
    await cluster.start();
    await until(() => store.findFault() === undefined);
  }
  await stop();
  return answered;
}

test('answered filings survive kills of PostgreSQL, and numbers have no gap', { skip }, async (t) => {
  const { cluster, url, store } = await openGallery(t);
  const answered = await killUnderLoad(cluster, store);
  const stored = new Set(await storedIn(url));
  assert.deepEqual([...stored], numbered(stored.size));
  assert.deepEqual(
    answered.filter((number) => !stored.has(number)),
    [],
  );
  await store.execute({ effect: toFile(by) });
  const page = { from: undefined, size: 10 };
  const { outcome } = await store.execute({ effect: { kind: 'ListFilings', filter: anyFiling, page } });
  assert.equal(outcome.kind, 'DONE', 'the records are those of the log');
});

test('the same kill loses answered filings if commits do not wait for the disk', { skip }, async (t) => {
  // Nothing but the stopped WAL writer writes the log before its 16 MB in memory are full.
  const settings = { wal_buffers: '16MB', shared_buffers: '128MB', bgwriter_lru_maxpages: '0' };
  const { cluster, url, store } = await openGallery(t, settings);
  // After the start, which refuses it.
  await runSql(url, 'ALTER SYSTEM SET synchronous_commit = off', 'SELECT pg_reload_conf()');
  const [writer] = await runSql<{ pid: number }>(
    url,
    "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'",
  );
  process.kill(writer?.pid ?? assert.fail(), 'SIGSTOP');
  const { answered, stop } = fileUntilStopped(store);
  await until(() => answered.length > 200);
  await cluster.kill();
  await cluster.start();
  // The store refuses the setting again, so no new filing takes a lost number.
  const stored = new Set(await storedIn(url));
  await runSql(url, 'ALTER SYSTEM RESET ALL', 'SELECT pg_reload_conf()');
  await stop();
  assert.ok(answered.some((number) => !stored.has(number)));
});

test('a session that is ended fails what is under way, and the next requests are executed', {
  skip,
}, async (t) => {
  const { url, store } = await openGallery(t);
  for (let ended = 0; ended < kills; ended += 1) {
    const { stop, answered } = fileUntilStopped(store);
    await until(() => answered.length > 5);
    await runSql(
      url,
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'artseal'",
    );
    const before = answered.length;
    await until(() => answered.length > before + 5);
    await stop();
    const stored = await storedIn(url);
    assert.deepEqual(stored, numbered(stored.length));
  }
});

test('calls are counted on from what the table has, when another session has written it', {
  skip,
}, async (t) => {
  const { url, store } = await openGallery(t);
  const month = '2026-11';
  const count = async () => {
    const quota = { callerId: 1, month, limit: undefined, take: true };
    const { calls } = await store.execute({ admission: { nowS: 1_800_000_000, quota } });
    return calls;
  };
  assert.deepEqual([await count(), await count()], [1, 2]);
  await runSql(url, endSessions, 'UPDATE usage SET calls = 7');
  let calls: number | undefined;
  await until(async () => {
    calls = await count().catch(() => undefined);
    return calls !== undefined;
  });
  assert.equal(calls, 8);
});

test('nothing is stored on a full disk, and the next requests are executed once there is room', {
  skip,
}, async (t) => {
  const { url, store } = await openGallery(t);
  const file = () => store.execute({ effect: toFile(by) });
  await file();
  await runSql(
    url,
    `CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE disk_full; END $$`,
    'CREATE TRIGGER full_disk AFTER INSERT ON filing EXECUTE FUNCTION fail()',
  );
  const refused = { reason: 'UNAVAILABLE', message: /nothing was stored/ };
  await Promise.all(Array.from({ length: 100 }, () => assert.rejects(file(), refused)));
  await runSql(url, 'DROP TRIGGER full_disk ON filing');
  await file();
  assert.deepEqual(await storedIn(url), numbered(2));
});

test('a request that arrives while another one fails to be stored is executed', { skip }, async (t) => {
  const { url, store } = await openGallery(t);
  await failUnlucky(url);
  await store.execute({ effect: fileOf('lucky') });
  const stored = await storedIn(url);
  // Later by a turn of the event loop each time, so that it meets each step of the failure.
  for (let turns = 0; turns < 200; turns += 1) {
    const admission = { nowS: 1_800_000_000, nonce: { keyId: 1, nonce: `nonce ${turns}` } };
    const failing = assert.rejects(store.execute({ admission, effect: fileOf('unlucky') }));
    for (let turn = 0; turn < turns; turn += 1) await new Promise(setImmediate);
    const { outcome } = await store.execute({ effect: fileOf('lucky') });
    await failing;
    assert.ok(outcome.kind === 'DONE');
    stored.push(outcome.result.filingNo);
    const { outcome: repeated } = await store.execute({ admission });
    assert.equal(repeated.kind, 'NOT_ADMITTED', 'the admission of the one that failed is kept');
  }
  assert.deepEqual(stored, numbered(201));
  assert.deepEqual(await storedIn(url), stored);
});

test('a batch that cannot be stored is executed in halves, and so is the next one, which was read ahead', {
  skip,
}, async (t) => {
  const { url, store } = await openGallery(t);
  await failUnlucky(url);
  const file = (author: string) => store.execute({ effect: fileOf(author) });
  const authors = Array.from({ length: 320 }, (_, nth) => (nth % 40 === 20 ? 'unlucky' : 'lucky'));
  const results = await Promise.allSettled(authors.map(file));
  const failed = results.flatMap(({ status }, nth) => (status === 'rejected' ? authors[nth] : []));
  assert.deepEqual(failed, Array(8).fill('unlucky'));
  assert.deepEqual(await storedIn(url), numbered(312));
});

test('a database that was put back to an earlier state is not written', { skip }, async (t) => {
  const { url, store } = await openGallery(t);
  await store.execute({ effect: toFile(by) });
  await runSql(url, ...withoutTriggers('log_leaf', 'DELETE FROM log_leaf'));
  await assert.rejects(store.execute({ effect: toFile(by) }), { reason: 'RECORD_DAMAGED' });
});

test('a database belongs to one environment and one currency', { skip }, async (t) => {
  const { url, store } = await openGallery(t);
  await store.close();
  const open = (changed: object) => openPostgresStore({ place: { url }, ...sandbox, ...changed });
  await assert.rejects(open({ environment: 'production' }), /belongs to a sandbox deployment/);
  await assert.rejects(open({ currency: 'EUR' }), /belongs to a deployment in CNY/);
  await assert.rejects(open({ opening: 'NEW' }), /has the tables of Artseal already/);
});

test('a store opens although its process stands still meanwhile', { skip }, async (t) => {
  const url = await createDatabase(t);
  const query: (...args: unknown[]) => unknown = pg.Client.prototype.query;
  let pauses = 0;
  t.mock.method(pg.Client.prototype, 'query', function (this: pg.Client, ...args: unknown[]) {
    const [first] = args as [{ readonly text?: string }];
    // In the transaction that reads the tree of the log, once its first statements were answered.
    if (first.text?.includes('generate_series')) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 700);
      pauses += 1;
    }
    return query.apply(this, args);
  });
  const store = await openPostgresStore({ place: { url }, ...sandbox });
  t.after(() => store.close());
  assert.equal(pauses, 1);
});
