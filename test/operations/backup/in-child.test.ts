import assert from 'node:assert/strict';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { inChild } from '../../../src/operations/backup/in-child.ts';

test('who takes backups is told the data folder and the one for temporary files, and nothing else of the service', async () => {
  const tellsEnvironment = [process.execPath, '-p', 'JSON.stringify(process.env)'];
  const take = inChild('/data', { folder: '/backups', keep: 1, everyMs: 60_000 }, tellsEnvironment);
  const told: unknown = await take(new AbortController().signal);
  assert.deepEqual(told, { ARTSEAL_DATA_DIR: '/data', TMPDIR: tmpdir() });
});
