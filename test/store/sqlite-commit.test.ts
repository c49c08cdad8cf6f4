import assert from 'node:assert/strict';
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

test('the first request of a turn has a commit of its own, and the others share one', async (t) => {
  const { store, dataDir, by } = await openFiling(t);
  const before = commitsIn(dataDir);
  await Promise.all(Array.from({ length: 100 }, () => perform(store, toFile(by))));
  assert.equal(commitsIn(dataDir), before + 2);
  await perform(store, toFile(by));
  assert.equal(commitsIn(dataDir), before + 3);
});

test('a request is one commit: nonce, idempotency key, quota and command', async (t) => {
  const { store, dataDir, by } = await openFiling(t);
  const before = commitsIn(dataDir);
  const { admission, effect } = underKey(by.callerId, 'k', toFile(by));
  assert.ok(admission);
  const nonce = { keyId: by.id, nonce: 'n' };
  const quota = { callerId: by.callerId, month: '2026-11', limit: 1, take: true };
  await store.execute({ admission: { ...admission, nonce, quota }, effect });
  assert.equal(commitsIn(dataDir), before + 1);
});

test('a read, or a rejected command without admission, writes no commit', async (t) => {
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

test('RewriteNothing writes one page to the log, and leaves the database as it was', async (t) => {
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

test('a store that another process locks too long rejects with UNAVAILABLE, and works again', async (t) => {
  const { store, dataDir } = await openFiling(t);
  const holder = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => holder.close());
  holder.exec('BEGIN IMMEDIATE');
  await Promise.all([
    refused(spend(store, 1, 'n'), 'UNAVAILABLE'),
    perform(store, { kind: 'HasCallers' }).then((has) => assert.equal(has, true, 'reads still work')),
  ]);
  holder.exec('ROLLBACK');
  assert.equal(await spend(store, 1, 'n'), true);
});
