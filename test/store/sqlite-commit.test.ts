import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { perform } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { commitsIn } from './commits.ts';
import { sqliteInThisThread } from './engines.ts';
import {
  addPlatform,
  anyFiling,
  firstPage,
  openStore,
  refused,
  spend,
  toFile,
  underKey,
} from './promises/fixtures.ts';

/** A store with a platform in it, and its folder. */
async function openFiling(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const store = await openStore(t, sqliteInThisThread, dataDir);
  return { store, by: await addPlatform(store, 'gallery'), dataDir };
}

test('units of one turn share a commit behind one of the first, those of another turn have their own', async (t) => {
  const { store, dataDir, by } = await openFiling(t);
  const before = commitsIn(dataDir);
  await Promise.all(Array.from({ length: 100 }, () => perform(store, toFile(by))));
  assert.equal(commitsIn(dataDir), before + 2);
  await perform(store, toFile(by));
  assert.equal(commitsIn(dataDir), before + 3);
});

test('a unit is one commit: nonce, key, quota and effect', async (t) => {
  const { store, dataDir, by } = await openFiling(t);
  const before = commitsIn(dataDir);
  const { admission, effect } = underKey(by.callerId, 'k', toFile(by));
  assert.ok(admission);
  const nonce = { keyId: by.id, nonce: 'n' };
  const quota = { callerId: by.callerId, month: '2026-11', limit: 1, take: true };
  await store.execute({ admission: { ...admission, nonce, quota }, effect });
  assert.equal(commitsIn(dataDir), before + 1);
});

test('what is read, or refused without an admission, costs no commit', async (t) => {
  const { store, dataDir } = await openFiling(t);
  const wal = join(dataDir, 'artseal.db-wal');
  const before = readFileSync(wal).length;
  await perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage(1) });
  await refused(
    perform(store, { kind: 'SetKeyStatus', by: tester, keyId: 'no key', status: 'SUSPENDED' }),
    'NOT_FOUND',
  );
  assert.equal(readFileSync(wal).length, before);
});

test('a write of nothing goes to the log like any other, and leaves the database as it was', async (t) => {
  const { store, dataDir } = await openFiling(t);
  const wal = join(dataDir, 'artseal.db-wal');
  const before = readFileSync(wal).length;
  await perform(store, { kind: 'RewriteNothing' });
  assert.equal(readFileSync(wal).length - before, 4_096 + 24, 'one page with its header');
  const reader = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  t.after(() => reader.close());
  assert.ok(Number(reader.pragma('user_version', { simple: true })) > 0);
  assert.equal(reader.pragma('integrity_check', { simple: true }), 'ok');
});

test('a store that another process holds too long refuses with UNAVAILABLE, and works again', async (t) => {
  const { store, dataDir } = await openFiling(t);
  const holder = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => holder.close());
  holder.exec('BEGIN IMMEDIATE');
  await Promise.all([
    refused(spend(store, 1, 'n'), 'UNAVAILABLE'),
    perform(store, { kind: 'HasCallers' }).then((has) =>
      assert.equal(has, true, 'what only reads is answered'),
    ),
  ]);
  holder.exec('ROLLBACK');
  assert.equal(await spend(store, 1, 'n'), true);
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
    'AS-2026-000001',
    'UNAVAILABLE',
    'UNAVAILABLE',
    'AS-2026-000002',
    'NOT_ADMITTED',
  ]);
  assert.deepEqual({ whileFull, calls }, { whileFull: 1, calls: 2 });
});
