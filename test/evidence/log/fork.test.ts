import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { isNamedAfter, nextFork } from '../../../src/evidence/log/publication.ts';
import { artsealWith, runHere } from '../../support/artseal.ts';
import { copyFolder } from '../../support/copy-folder.ts';
import { fileScope } from '../../support/file-scope.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { keptIn, signedBy, startPublishing } from './publishing.ts';

/** A folder in which five leaves were published, and the name of its log. */
let [published, origin] = ['', ''];

before(async () => {
  const service = await startPublishing(fileScope);
  await service.published(await service.file(3));
  origin = service.publication.current()?.origin ?? '';
  published = service.dataDir;
  await service.close();
});

/** Changes a copy of that folder, forks its log and serves it. Returns the new origin, and what the commands print. */
async function forked(
  t: TestContext,
  spoil: (file: string, sql: (statement: string) => void) => void,
  settings: Record<string, string> = {},
  accepted = (_file: string) => {},
) {
  const dataDir = join(temporaryFolder(t), 'data');
  copyFolder(published, dataDir);
  const client = new Sqlite(join(dataDir, 'artseal.db'));
  spoil(join(dataDir, 'log-checkpoint'), (statement) => client.exec(statement));
  client.close();
  const env = { ARTSEAL_DATA_DIR: dataDir, ...settings };
  const output = await runHere(['evidence', 'fork'], env);
  assert.deepEqual([output.code, output.errors], [3, []]);
  const planned = await runHere(['evidence', 'fork', '--json'], env);
  assert.deepEqual([planned.code, planned.errors], [3, []]);
  const plan = JSON.parse(planned.printed.join('\n'));
  assert.deepEqual([plan.result, plan.why, plan.vkey], ['PLANNED', output.printed[0], undefined]);
  const { code, errors, printed } = await runHere(['evidence', 'fork', '--accept'], env);
  assert.deepEqual([code, errors], [0, []]);
  accepted(join(dataDir, 'log-checkpoint'));
  const service = await startPublishing(t, { dataDir, env: settings });
  const current = service.publication.current();
  assert.equal(current?.origin, plan.origin);
  assert.deepEqual(
    service.publication.verifierKeys(),
    printed.filter((line) => line.startsWith(`${current?.origin}+`)),
  );
  const proposal = output.printed.join('\n');
  return { origin: current?.origin, proposal, output: printed.join('\n'), service };
}

test('the log of an older database is forked once an operator accepts it, and the fork names the last checkpoint', async (t) => {
  const dataDir = join(temporaryFolder(t), 'newer');
  copyFolder(published, dataDir);
  const newer = await startPublishing(t, { dataDir });
  await newer.published(await newer.file(2));
  await newer.close();
  const last = keptIn(dataDir);
  const name = `${origin}/2`;
  const { proposal, service } = await forked(
    t,
    (file) => writeFileSync(file, last),
    {},
    (file) => {
      const kept = `${file}.${origin.replace('/', '_')}.old`;
      assert.deepEqual([existsSync(file), readFileSync(kept, 'utf8')], [false, last]);
      // As after a crash before the old file was removed: the start continues with the new log.
      copyFileSync(kept, file);
    },
  );
  assert.match(proposal, /^the database is older than .* 5 leaves, .* checkpoint of 7/);
  assert.match(proposal, /^CAREFUL: .*gives out numbers a second time/m);
  assert.ok(
    proposal.includes(`nothing was changed: --accept begins the log ${name} with a new key`),
    proposal,
  );
  await service.published(await service.file(1));
  const { size } = signedBy(keptIn(service.dataDir), service.publication.verifierKeys());
  const leaves = await (await fetch(`${service.publicUrl}/log/tile/entries/000.p/${size}`)).text();
  assert.match(leaves, /"kind":"LOG_FORKED"/);
  assert.ok(leaves.includes(JSON.stringify(last).slice(1, -1)), 'the leaf names the old checkpoint');
});

/** A database whose log began again: it lost its names, keys and checkpoints. */
const begunAgain =
  'DROP TRIGGER log_origin_is_kept; DELETE FROM log_origin; DELETE FROM log_key; DELETE FROM log_checkpoint';

test('a log that cannot be signed can be forked for any reason, and is then published under its new name', async (t) => {
  const missing = await forked(t, (file) => rmSync(file));
  assert.equal(missing.origin, `${origin}/2`);
  assert.match(missing.output, /the last known checkpoint of \S+ has 5 leaves/);
  const foreign = await forked(t, (file) =>
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(origin, 'log.example/other')),
  );
  assert.equal(foreign.origin, `${origin}/2`);
  assert.ok(foreign.output.includes(`\nthe last known checkpoint of ${origin} has 5 leaves`), foreign.output);
  const damaged = await forked(t, (file) => writeFileSync(file, 'no note'));
  assert.equal(damaged.origin, `${origin}/2`);
  assert.match(damaged.output, /the old checkpoint file is kept as .*\.old/);
  assert.equal((await forked(t, (_, sql) => sql(begunAgain))).origin, `${origin}/2`);
  const renamed = await forked(t, () => {}, { ARTSEAL_TLOG_ORIGIN: 'log.example/art' });
  assert.equal(renamed.origin, 'log.example/art');
});

test('a fork keeps the old checkpoint under a name that has no other file, and else changes nothing', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  copyFolder(published, dataDir);
  const file = join(dataDir, 'log-checkpoint');
  writeFileSync(file, 'no note');
  const kept = `${file}.${origin.replace('/', '_')}.old`;
  const artseal = artsealWith({ ARTSEAL_DATA_DIR: dataDir });
  const rejected = async (error: RegExp) => {
    await artseal.errors(1, 'evidence fork --accept', error);
    assert.equal(readFileSync(file, 'utf8'), 'no note');
  };
  writeFileSync(kept, 'another checkpoint');
  await rejected(/\.old exists and is from another fork: move it elsewhere first/);
  assert.equal(readFileSync(kept, 'utf8'), 'another checkpoint');
  rmSync(kept);
  // A file that cannot be read: not even root can follow this link.
  symlinkSync(kept, kept);
  await rejected(/ELOOP/);
  rmSync(kept);
  writeFileSync(kept, 'no note');
  await artseal.text('evidence fork --accept');
  assert.deepEqual([existsSync(file), readFileSync(kept, 'utf8')], [false, 'no note']);
});

test('a backup of a fork that had published nothing is not signed, because the fork may have published since', async (t) => {
  const folder = temporaryFolder(t);
  const [dataDir, restored, backup] = [
    join(folder, 'data'),
    join(folder, 'restored'),
    join(folder, 'backup'),
  ];
  copyFolder(published, dataDir);
  const file = readFileSync(join(dataDir, 'log-checkpoint'));
  rmSync(join(dataDir, 'log-checkpoint'));
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const artseal = artsealWith(env);
  const { why, vkey, ...fork } = await artseal.json('evidence fork --accept');
  assert.match(why, /log-checkpoint is missing/);
  assert.ok(vkey.startsWith(`${origin}/2+`), vkey);
  const previous = { origin, size: 5 };
  assert.deepEqual(fork, { result: 'FORKED', origin: `${origin}/2`, previous, givesNumbersAgain: false });
  await artseal.text(`backup ${backup}`);
  const goingOn = await startPublishing(t, { dataDir });
  await goingOn.published(await goingOn.file(2));
  await goingOn.close();
  await artseal.text(`restore ${backup} --into ${restored}`);
  copyFileSync(join(dataDir, 'master-key'), join(restored, 'master-key'));
  const rejected = { name: 'EvidenceLogError', kind: 'FILE_MISSING' };
  await assert.rejects(startPublishing(t, { dataDir: restored }), rejected);
  // The last checkpoint before the fork does not help.
  writeFileSync(join(restored, 'log-checkpoint'), file);
  await assert.rejects(startPublishing(t, { dataDir: restored }), rejected);
  copyFileSync(join(dataDir, 'log-checkpoint'), join(restored, 'log-checkpoint'));
  await assert.rejects(startPublishing(t, { dataDir: restored }), { kind: 'DATABASE_BEHIND' });
});

test('a fork gets the next number after the highest known one', () => {
  assert.equal(nextFork('a', []), 'a');
  assert.equal(nextFork('a', ['a']), 'a/2');
  assert.equal(nextFork('a', ['a/2']), 'a/3');
  assert.equal(nextFork('a', ['a', 'a/9', 'a/10', 'b/70', 'a/x']), 'a/11');
  assert.ok(isNamedAfter('a', 'a') && isNamedAfter('a/2', 'a'));
  assert.ok(!isNamedAfter('a/x', 'a') && !isNamedAfter('ab/2', 'a') && !isNamedAfter('a', 'a/2'));
});
