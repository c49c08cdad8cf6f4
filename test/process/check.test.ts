import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileArtwork } from '../support/calls.ts';
import { readableNames } from '../support/copy-folder.ts';
import { freeAddress } from '../support/free-address.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { runBounded, serveWatched } from '../support/watched-command.ts';

test('check changes nothing beside a running server, nor after kill -9', { timeout: 300_000 }, async (t) => {
  const dataDir = temporaryFolder(t);
  const { platform } = await issueInto(dataDir, 1);
  const env = {
    ARTSEAL_DATA_DIR: dataDir,
    ARTSEAL_PUBLIC_ADDR: await freeAddress(),
    ARTSEAL_INTERNAL_ADDR: await freeAddress(),
    ARTSEAL_METRICS_ADDR: await freeAddress(),
  };
  const service = await serveWatched(t, env);
  assert.equal((await fileArtwork(service, platform)).status, 200);
  const names = readdirSync(dataDir);
  const database = readFileSync(join(dataDir, 'artseal.db'));
  const running = await runBounded(t, ['check'], env);
  assert.deepEqual([running.code, running.stderr], [0, ''], running.stdout);
  const serving = new RegExp(`^ok +serving +the process ${service.child.pid} serves this folder at `, 'm');
  assert.match(running.stdout, serving);
  assert.deepEqual(readdirSync(dataDir), names);
  assert.ok(database.equals(readFileSync(join(dataDir, 'artseal.db'))));
  assert.equal((await fileArtwork(service, platform)).status, 200);

  service.child.kill('SIGSTOP');
  const hanging = await runBounded(t, ['check'], env);
  assert.equal(hanging.code, 1);
  assert.match(
    hanging.stdout,
    /^fault +serving +the process \d+ .*, but does not respond: see .*server-hangs\.md$/m,
  );

  assert.equal(await service.stop('SIGKILL'), null);
  // SQLite writes the index of the log, -shm, when it is read.
  const contents = () =>
    readableNames(dataDir)
      .filter((name) => !name.endsWith('-shm'))
      .map((name) => [name, readFileSync(join(dataDir, name), 'latin1')]);
  const killed = contents();
  assert.match((await runBounded(t, ['check'], env)).stdout, /^ok +serving +no process serves this folder$/m);
  assert.deepEqual(contents(), killed);
});
