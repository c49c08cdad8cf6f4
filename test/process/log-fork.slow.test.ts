import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { readCheckpoint } from '../../src/evidence/formats/checkpoint.ts';
import { isSignedBy } from '../../src/evidence/log/agreement.ts';
import { fileArtwork } from '../support/calls.ts';
import { issueInto } from '../support/issued.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { assertOneLine, runBounded, runCommand, serveWatched } from '../support/watched-command.ts';

test('the log of an older database is forked once an operator accepts it, and the fork names the last checkpoint', {
  timeout: 300_000,
}, async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const { platform } = await issueInto(dataDir, 1);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const [database, file] = [join(dataDir, 'artseal.db'), join(dataDir, 'log-checkpoint')];
  const fork = (...words: string[]) => runCommand(['evidence', 'fork', ...words], env);
  const served = async (filings: number) => {
    const service = await serveWatched(t, env);
    for (let nth = 0; nth < filings; nth += 1)
      assert.equal((await fileArtwork(service, platform)).status, 200);
    return service;
  };

  const first = await served(1);
  const beside = await fork();
  assert.equal(beside.code, 1);
  assert.match(beside.stderr, /another artseal uses/);
  assert.equal(await first.stop(), 0, first.stderr());
  const sound = await fork('--accept');
  assert.deepEqual([sound.code, sound.stderr], [0, '']);
  assert.match(sound.stdout, /there is nothing to fork/);
  copyFileSync(database, `${database}.copy`);

  const second = await served(2);
  assert.equal(await second.stop(), 0, second.stderr());
  const last = readFileSync(file, 'utf8');
  const before = readCheckpoint(last, 'the checkpoint');
  assert.equal(before.size, 5);
  copyFileSync(`${database}.copy`, database);
  for (const lost of ['-wal', '-shm']) rmSync(`${database}${lost}`, { force: true });
  const older = await runBounded(t, ['serve'], env);
  assertOneLine(
    older,
    1,
    /the database is older than .* 3 leaves, .* checkpoint of 5\..* evidence fork --accept/,
  );

  const proposal = await fork();
  assert.deepEqual([proposal.code, proposal.stderr], [3, '']);
  assert.match(
    proposal.stdout,
    /the database is older than .*\n(.*\n)?CAREFUL: .*gives out numbers a second time/,
  );
  const name = `${before.origin}/2`;
  assert.ok(proposal.stdout.includes(`nothing was changed: --accept begins the log ${name} with a new key`));
  assert.equal(readFileSync(file, 'utf8'), last);

  const accepted = await fork('--accept', '--reason', 'the disk died');
  assert.deepEqual([accepted.code, accepted.stderr], [0, '']);
  const [vkey = ''] = accepted.stdout.split('\n').filter((line) => line.startsWith(`${name}+`));
  const kept = `${file}.${before.origin.replace('/', '_')}.old`;
  assert.equal(readFileSync(kept, 'utf8'), last);
  assert.ok(!existsSync(file));
  const acts = await runCommand(['audit-log', '--json'], env);
  assert.partialDeepStrictEqual(JSON.parse(acts.stdout.split('\n')[0] ?? ''), {
    action: 'evidence fork',
    subject: name,
    reason: 'the disk died',
  });

  // As after a crash before the old file was removed: the start continues with the new log.
  copyFileSync(kept, file);
  const third = await served(1);
  const leaves = Buffer.from(
    await (await fetch(`${third.publicUrl}/log/tile/entries/000.p/6`)).arrayBuffer(),
  ).toString();
  const vkeys = await (await fetch(`${third.publicUrl}/log/vkey`)).text();
  const audited = await runCommand(['log', 'audit', `${third.publicUrl}/log`, '--key', vkey], {});
  assert.equal(audited.code, 0, audited.stderr);
  assert.match(
    audited.stderr,
    new RegExp(`^warning: leaf 3 says that the log was forked and continues as "${name}", after 5 leaves of`),
  );
  assert.equal(await third.stop(), 0, third.stderr());
  const now = readCheckpoint(readFileSync(file, 'utf8'), 'the checkpoint');
  assert.deepEqual([now.origin, now.size, isSignedBy(now.note, [vkey])], [name, 7, true]);
  assert.equal(vkeys, `${vkey}\n`);
  assert.match(leaves, /"kind":"LOG_FORKED"/);
  assert.ok(leaves.includes(JSON.stringify(before.note).slice(1, -1)), 'the leaf names the old checkpoint');
  assert.deepEqual((await fork()).code, 0);
});
