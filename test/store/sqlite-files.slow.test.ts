import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
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

test('a commit that the disk rejects is UNAVAILABLE, and uses up no number, nonce or quota', (t) => {
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
