import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { test } from 'node:test';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { FolderInUse, isInUse } from '../../src/store/sqlite/folder-lock.ts';
import { inspectDatabase } from '../../src/store/sqlite/inspection.ts';
import { perform } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { anyFiling, firstPage, sandbox } from './promises/fixtures.ts';

const script = join(import.meta.dirname, 'children', 'hold-folder.ts');

test('a folder that a process uses cannot be opened, its snapshot can be read, and kill -9 ends its lock', async (t) => {
  const dataDir = temporaryFolder(t);
  const options = { dataDir, ...sandbox };
  const child = spawn(process.execPath, [script, dataDir], { stdio: ['ignore', 'pipe', 'inherit'] });
  t.after(() => child.kill('SIGKILL'));
  const [line] = await once(child.stdout, 'data');
  assert.equal(String(line), 'open\n');

  assert.ok(isInUse(dataDir));
  for (const opening of ['EXISTING', 'EITHER', 'NEW'] as const)
    assert.throws(() => createSqliteStore({ ...options, opening }), FolderInUse);
  const inspection = await inspectDatabase(dataDir, 2026, async ({ keys }) => keys);
  assert.deepEqual([inspection?.damages, inspection?.content?.newestFilingMs !== undefined], [[], true]);

  child.kill('SIGKILL');
  await once(child, 'close');
  assert.ok(!isInUse(dataDir));
  const store = createSqliteStore(options);
  assert.ok(store.checkedMs !== undefined, 'it was not closed');
  const filed = await perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage() });
  assert.equal(filed.items.length, 1);
  await store.close();
  const again = createSqliteStore(options);
  t.after(() => again.close());
  assert.equal(again.checkedMs, undefined);
});
