import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readCheckpoint } from '../../src/evidence/formats/checkpoint.ts';
import { isSignedBy } from '../../src/evidence/log/agreement.ts';
import { forge } from '../evidence/log/forgery.ts';
import { eventually } from '../support/eventually.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, serveWatched } from '../support/watched-command.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

test('a database that is behind what was published is not served, nor one that was forged; the right one is', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const { platforms } = await issueInto(dataDir, 1);
  const [platform] = platforms as [IssuedPlatform];
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const [database, file] = [join(dataDir, 'artseal.db'), join(dataDir, 'log-checkpoint')];
  const copy = `${database}.copy`;
  const published = () => readCheckpoint(readFileSync(file, 'utf8'), 'the checkpoint').size;
  const filed = async (publicUrl: string) => {
    const { status } = await send(publicUrl, platform, {
      target: '/api/v1/filing',
      body: JSON.stringify(artwork),
    });
    assert.equal(status, 200);
  };

  const first = await serveWatched(t, env);
  await filed(first.publicUrl);
  assert.equal(await first.stop(), 0, first.stderr());
  assert.equal(published(), 3, 'what was filed last is published before the end');
  copyFileSync(database, copy);

  // Killed, it loses nothing; without its write-ahead log the database is behind.
  const second = await serveWatched(t, env);
  await filed(second.publicUrl);
  await eventually('a checkpoint', timeoutMs, () => published() === 4);
  // A running server honours another key, which is a leaf as well.
  const rotated = await runBounded(t, ['evidence', 'rotate-key', '--json'], env);
  const { vkey } = JSON.parse(rotated.stdout);
  await eventually('both keys sign', timeoutMs, () => published() === 5);
  const note = readFileSync(file, 'utf8');
  assert.equal(note.split('\n— ').length, 3);
  assert.ok(isSignedBy(note, [vkey]));
  await second.stop('SIGKILL');
  const log = `${database}-wal`;
  copyFileSync(log, `${copy}-wal`);
  for (const lost of [log, `${database}-shm`]) rmSync(lost);
  const behind = await runBounded(t, ['serve'], env);
  // Killed, it says first that it was checked.
  const stderr = behind.stderr.replaceAll(/^\{.*"level":40.*\n/gm, '');
  assertOneLine(
    { ...behind, stderr },
    1,
    /the database is behind .* 3 leaves, .* a checkpoint of 5\..* evidence fork --accept/,
  );

  for (const [from, to] of [
    [copy, database],
    [`${copy}-wal`, log],
  ] as const)
    copyFileSync(from, to);
  rmSync(`${database}-shm`, { force: true });
  const third = await serveWatched(t, env);
  assert.equal(await third.stop(), 0, third.stderr());
  assert.equal(published(), 5);

  forge(dataDir);
  const forged = await runBounded(t, ['serve'], env);
  assertOneLine(forged, 1, /the database does not agree with what was published/);
});
