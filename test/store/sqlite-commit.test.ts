import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { perform } from '../../src/store/store.ts';
import { tester } from '../support/audit-log.ts';
import { commitsIn } from './commits.ts';
import { sqliteInThisThread } from './engines.ts';
import { anyFiling, firstPage, openGallery, refused, toFile } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

test('the first request of a turn has a commit of its own, and the others share one', async (t) => {
  const { store, dataDir, by } = await openGallery(t, sqliteInThisThread);
  const before = commitsIn(dataDir);
  await Promise.all(Array.from({ length: 100 }, () => perform(store, toFile(by))));
  assert.equal(commitsIn(dataDir), before + 2);
  await perform(store, toFile(by));
  assert.equal(commitsIn(dataDir), before + 3);
});

test('a read, or a rejected command without admission, writes no commit', async (t) => {
  const { store, dataDir } = await openGallery(t, sqliteInThisThread);
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
  const { store, dataDir } = await openGallery(t, sqliteInThisThread);
  const wal = join(dataDir, 'artseal.db-wal');
  const before = readFileSync(wal).length;
  await perform(store, { kind: 'RewriteNothing' });
  assert.equal(readFileSync(wal).length - before, 4_096 + 24, 'one page with its header');
  const reader = openRaw(t, dataDir, { readonly: true });
  assert.ok(Number(reader.pragma('user_version', { simple: true })) > 0);
  assert.equal(reader.pragma('integrity_check', { simple: true }), 'ok');
});
