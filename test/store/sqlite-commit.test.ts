import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { watchFiles } from '../../src/store/sqlite/file-watch.ts';
import { createGroupCommit } from '../../src/store/sqlite/group-commit.ts';
import type { Store } from '../../src/store/store.ts';
import { refusal } from '../support/refused.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, anyFiling, noon, painting, refused, sandbox } from './promises/fixtures.ts';

/** A store with a platform in it, whose own connection the test holds, and with it the limits of the connection. */
async function openLimited(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const { pragma } = Sqlite.prototype;
  const connections = new Set<Sqlite.Database>();
  const opened = t.mock.method(Sqlite.prototype, 'pragma', function (this: Sqlite.Database, ...words) {
    connections.add(this);
    return pragma.apply(this, words);
  } satisfies typeof pragma);
  const store = createSqliteStore({ dataDir, ...sandbox });
  opened.mock.restore();
  const [client] = connections;
  assert.ok(client !== undefined && connections.size === 1);
  t.after(() => store.close().catch(() => {}));
  const by = await addPlatform(store, 'gallery');
  await store.durable();
  return {
    store,
    by,
    dataDir,
    /** Lets the database have so many pages more, and no others. */
    allowPages: (more: number) => {
      const pages = Number(client.pragma('page_count', { simple: true }));
      client.pragma(`max_page_count = ${pages + more}`);
    },
    rows: (table: string) => client.prepare(`SELECT count(*) FROM ${table}`).pluck().get(),
  };
}

/** How many transactions a write-ahead log holds: only the last frame of each tells the size of the database. */
function commitsIn(wal: Buffer): number {
  const [headerBytes, frameHeaderBytes] = [32, 24];
  const frameBytes = frameHeaderBytes + wal.readUInt32BE(8);
  let commits = 0;
  for (let at = headerBytes; at + frameBytes <= wal.length; at += frameBytes) {
    const sameLog = wal.subarray(at + 8, at + 16).equals(wal.subarray(16, 24));
    if (sameLog && wal.readUInt32BE(at + 4) > 0) commits += 1;
  }
  return commits;
}

test('effects of one turn share one commit, those of another have their own', async (t) => {
  const { store, dataDir, by } = await openLimited(t);
  const countCommits = () => commitsIn(readFileSync(join(dataDir, 'artseal.db-wal')));
  const before = countCommits();
  await Promise.all(Array.from({ length: 100 }, () => store.filings.file(painting, noon, by)));
  await store.durable();
  assert.equal(countCommits(), before + 1);
  await store.filings.file(painting, noon, by);
  await store.durable();
  assert.equal(countCommits(), before + 2);
});

test('effects that wait for nothing but each other share one commit', async (t) => {
  const { store, dataDir, by } = await openLimited(t);
  const countCommits = () => commitsIn(readFileSync(join(dataDir, 'artseal.db-wal')));
  const before = countCommits();
  for (let place = 0; place < 50; place += 1) {
    await store.admission.claimNonce({ keyId: by.id, nonce: String(place), nowS: 1_790_000_000 });
    await store.admission.countCall(by.callerId, '2026-11');
    await store.filings.file(painting, noon, by);
  }
  await store.durable();
  assert.equal(countCommits(), before + 1);
});

test('what is read or refused costs no commit', async (t) => {
  const { store, dataDir } = await openLimited(t);
  const wal = join(dataDir, 'artseal.db-wal');
  const before = readFileSync(wal).length;
  await store.filings.list(anyFiling, { from: undefined, size: 1 });
  await refused(store.callers.setKeyStatus('no key', 'SUSPENDED'), 'NOT_FOUND');
  await store.durable();
  assert.equal(readFileSync(wal).length, before);
});

/** One turn of verbs: how many of them took effect and are durable. What is refused must be UNAVAILABLE. */
async function durableOf(store: Store, verbs: readonly (() => Promise<unknown>)[]): Promise<number> {
  const calls = verbs.map((verb) => verb());
  const [barrier, ...settled] = await Promise.allSettled([store.durable(), ...calls]);
  for (const result of [barrier, ...settled]) {
    if (result.status === 'rejected') await refused(Promise.reject(result.reason), 'UNAVAILABLE');
  }
  return barrier.status === 'rejected' ? 0 : settled.filter(({ status }) => status === 'fulfilled').length;
}

test('a filing that finds the disk full is UNAVAILABLE and leaves nothing; it works when there is space', async (t) => {
  const { store, allowPages, rows, by } = await openLimited(t);
  const big = { ...painting, condition: 'x'.repeat(2_000) };
  const file = () => store.filings.file(big, noon, by);
  allowPages(2);
  let kept = 0;
  for (let full = false; !full; ) {
    const durable = await durableOf(store, [file, file, file]);
    kept += durable;
    full = durable < 3;
    assert.deepEqual([rows('filing'), rows('provenance_record')], [kept, kept]);
  }
  assert.equal(await durableOf(store, [file, file]), 0);

  allowPages(1_000);
  assert.equal(await durableOf(store, [file]), 1);
  const { items } = await store.filings.list(anyFiling, { from: undefined, size: 100 });
  assert.deepEqual(
    items.map(({ filingNo }) => Number(filingNo.slice(-6))),
    Array.from({ length: kept + 1 }, (_, place) => kept + 1 - place),
  );
});

test('a nonce whose claim found the disk full is not spent, one that is durable stays spent', async (t) => {
  const { store, allowPages, rows, by } = await openLimited(t);
  const claim = (nonce: string) => store.admission.claimNonce({ keyId: by.id, nonce, nowS: 1_790_000_000 });
  const turnOf = (place: number) =>
    Array.from({ length: 50 }, (_, each) => `${'n'.repeat(50)} ${place} ${each}`);
  allowPages(2);
  let place = 0;
  for (let full = false; !full; ) {
    const before = Number(rows('nonce_claim'));
    const kept = await durableOf(
      store,
      turnOf(place).map((nonce) => () => claim(nonce)),
    );
    assert.equal(rows('nonce_claim'), before + kept);
    full = kept < 50;
    if (!full) place += 1;
  }
  allowPages(1_000);
  assert.ok(place > 0, 'a turn was durable');
  for (const nonce of turnOf(0)) assert.equal(await claim(nonce), false);
  assert.equal(await claim(turnOf(place).at(-1) ?? ''), true);
  await store.durable();
});

/** A group commit on a database where a child without its parent makes the commit fail, and nothing before it. */
function openFamily(t: TestContext) {
  const client = new Sqlite(join(temporaryFolder(t), 'family.db'));
  t.after(() => client.close());
  client.pragma('foreign_keys = ON');
  client.exec(`CREATE TABLE parent (id INTEGER PRIMARY KEY);
    CREATE TABLE child (parent INTEGER REFERENCES parent DEFERRABLE INITIALLY DEFERRED);`);
  const { write, durable } = createGroupCommit(client, watchFiles(client.name));
  return {
    write,
    durable,
    insert: (table: string) => write(() => client.exec(`INSERT INTO ${table} VALUES (1)`)),
    rows: () => client.prepare('SELECT count(*) FROM child').pluck().get(),
  };
}

test('a commit that fails undoes all effects of its turn, and the next one works', async (t) => {
  const { insert, durable, rows } = openFamily(t);
  insert('child');
  insert('child');
  await refused(durable(), 'UNAVAILABLE');
  assert.equal(rows(), 0);
  insert('parent');
  insert('child');
  await durable();
  assert.equal(rows(), 1);
});

test('more effects at once than a commit may hold are refused with UNAVAILABLE, those before are kept', async (t) => {
  const { insert, write, durable, rows } = openFamily(t);
  insert('parent');
  insert('child');
  let taken = 0;
  assert.throws(() => {
    for (; taken < 10_000_000; taken += 1) write(() => {});
  }, refusal('UNAVAILABLE'));
  assert.ok(taken > 10_000);
  assert.throws(() => insert('child'), refusal('UNAVAILABLE'));
  await durable();
  assert.equal(rows(), 1);
  insert('child');
  await durable();
  assert.equal(rows(), 2);
});

test('a store that another process holds too long refuses with UNAVAILABLE, and works again', async (t) => {
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const holder = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => holder.close());
  holder.exec('BEGIN IMMEDIATE');
  const claim = () => store.admission.claimNonce({ keyId: 1, nonce: 'n', nowS: 1_790_000_000 });
  await refused(claim(), 'UNAVAILABLE');
  assert.equal(await store.callers.isEmpty(), true, 'what only reads is not held up');
  holder.exec('ROLLBACK');
  assert.equal(await claim(), true);
  await store.durable();
});

const canLimitFiles = spawnSync('prlimit', ['--version']).status === 0;

test('a disk that takes no more bytes at commit is UNAVAILABLE; numbers, nonces and quota go on as if nothing was', {
  skip: canLimitFiles ? false : 'prlimit is not there',
}, async (t) => {
  const script = join(import.meta.dirname, 'children', 'limited-disk.ts');
  const words = ['-c', 'trap "" XFSZ; exec "$0" "$@"', process.execPath, script, temporaryFolder(t)];
  const { stdout, stderr } = spawnSync('sh', words, { encoding: 'utf8' });
  assert.notEqual(stdout, '', stderr);
  const { outcomes, whileFull, calls } = JSON.parse(stdout);
  assert.deepEqual(outcomes, [
    'AS-2026-000001 true',
    'UNAVAILABLE',
    'UNAVAILABLE',
    'AS-2026-000002 true',
    'AS-2026-000003 false',
  ]);
  assert.deepEqual({ whileFull, calls }, { whileFull: 1, calls: 3 });
});
