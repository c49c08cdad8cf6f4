import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { perform } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, painting, sandbox, toFile } from './promises/fixtures.ts';

test('the write-ahead log shrinks after a long reader has ended', async (t) => {
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const by = await addPlatform(store, 'gallery');
  const artwork = { ...painting, condition: '\u8272'.repeat(2_000) };
  const file = () =>
    Promise.all(Array.from({ length: 1_000 }, () => perform(store, { ...toFile(by), artwork })));
  const logBytes = async () => (await store.metrics()).files?.logBytes ?? Number.NaN;
  const reader = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  t.after(() => reader.close());
  reader.exec('BEGIN; SELECT count(*) FROM filing');
  for (let batch = 0; batch < 7; batch += 1) await file();
  assert.ok((await logBytes()) > 40_000_000, `${await logBytes()}`);
  reader.exec('COMMIT');
  // The first batch folds the log into the database, the second writes it from its beginning.
  for (let batch = 0; batch < 2; batch += 1) await file();
  assert.ok((await logBytes()) <= 33_554_432, `${await logBytes()}`);
});
