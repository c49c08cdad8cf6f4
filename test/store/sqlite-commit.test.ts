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
import { addPlatform, anyFiling, firstPage, openStore, refused, toFile } from './promises/fixtures.ts';

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
