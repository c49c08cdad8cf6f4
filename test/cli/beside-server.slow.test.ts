import assert from 'node:assert/strict';
import { once } from 'node:events';
import { renameSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { test } from 'node:test';
import { serverLimitMs } from '../../src/cli/session.ts';
import { runHere } from '../support/artseal.ts';
import { startService } from '../support/service.ts';

test('a command reports that the running server did not read the change in time', async (t) => {
  const service = await startService(t);
  // A socket that does not answer takes the place of the admin socket.
  const silent = createServer();
  const { promise: connected, resolve } = Promise.withResolvers<void>();
  silent.on('connection', () => resolve());
  const path = join(service.dataDir, 'admin.sock');
  renameSync(path, `${path}.moved`);
  silent.listen(path);
  await once(silent, 'listening');
  t.after(() => {
    silent.close();
    renameSync(`${path}.moved`, path);
  });
  const words = ['key', 'create', '--name', 'late', '--tier', 'TRIAL', '--json'];
  const { code, printed, errors } = await runHere(words, { ARTSEAL_DATA_DIR: service.dataDir });
  assert.equal(code, 1);
  await connected;
  assert.equal(JSON.parse(printed.join()).caller, 'late');
  const message = `the change is stored, but the running server has not read it within ${serverLimitMs / 1_000} s`;
  assert.ok(errors.join().includes(message), errors.join());
});
