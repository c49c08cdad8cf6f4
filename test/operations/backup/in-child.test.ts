import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { inChild } from '../../../src/operations/backup/in-child.ts';

test('the child that takes backups gets the data folder and the temporary folder, and no other variable', async () => {
  const tellsEnvironment = [process.execPath, '-p', 'JSON.stringify(process.env)'];
  const take = inChild('/data', { folder: '/backups', keep: 1, everyMs: 60_000 }, tellsEnvironment);
  const environment: unknown = await take(new AbortController().signal);
  assert.deepEqual(environment, { ARTSEAL_DATA_DIR: '/data', TMPDIR: tmpdir() });
});
