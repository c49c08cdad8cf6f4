import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { issueSandboxCredentials } from '../../src/config/sandbox-credentials.ts';
import { artsealWith } from '../support/artseal.ts';
import { artsealCommand, artsealInShell, projectFolder } from '../support/artseal-command.ts';
import { tester } from '../support/audit-log.ts';
import { fileArtwork } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { issueInto, makeSandbox } from '../support/issued.ts';
import { scrape } from '../support/metrics.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  assertOneLine,
  commandEnvironment,
  runBounded,
  runCommand,
  runShell,
  serveWatched,
  startProgram,
} from '../support/watched-command.ts';

const brokenAfterMs = 60_000;
const quiet = { ARTSEAL_LOG_LEVEL: 'error' };

/** A sandbox whose database is so large that copying it takes a while. */
async function largeSandbox(t: TestContext, megabytes: number): Promise<string> {
  const dataDir = temporaryFolder(t);
  await makeSandbox(dataDir);
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  raw.pragma('synchronous = OFF');
  raw
    .prepare(
      `WITH RECURSIVE row (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM row WHERE n < ?)
       INSERT INTO idempotency_key (caller_id, key, fingerprint, claimed_at_s, outcome)
       SELECT 0, n, x'00', unixepoch(), randomblob(1000000) FROM row`,
    )
    .run(megabytes);
  raw.close();
  return dataDir;
}

/** The environment of the only child of a process, a line for each variable. */
function environmentOfChild(pid = 0): string {
  const child = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim();
  return readFileSync(`/proc/${child}/environ`, 'utf8').replaceAll('\0', '\n');
}

const partials = (folder: string) => readdirSync(folder).filter((name) => name.includes('.partial-'));

test('a backup of a busy service blocks no call and has every filing that was answered before it began', async (t) => {
  const dataDir = await largeSandbox(t, 60);
  const { platform } = await issueInto(dataDir, 1);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ...quiet });
  const answered: string[] = [];
  const file = async () => {
    const { status, json, text } = await fileArtwork(service, platform);
    // The three loops may exceed the rate.
    if (json.code === 'RATE_LIMITED') return;
    assert.equal(status, 200, text);
    answered.push(json.filingNo);
  };
  await file();
  const before = [...answered];
  const target = join(temporaryFolder(t), 'b.tar');
  let isDone = false;
  const taking = runCommand(['backup', target], { ARTSEAL_DATA_DIR: dataDir }).finally(() => {
    isDone = true;
  });
  const filesOnAndOn = async () => {
    while (!isDone) await file();
  };
  await Promise.all([filesOnAndOn(), filesOnAndOn(), filesOnAndOn()]);
  const { code, stderr } = await taking;
  assert.equal(code, 0, stderr);
  assert.equal(await service.stop('SIGKILL'), null);

  const into = join(temporaryFolder(t), 'restored');
  await artsealWith({}).text(`restore ${target} --into ${into}`);
  const raw = new Sqlite(join(into, 'artseal.db'));
  t.after(() => raw.close());
  const kept = raw.prepare<[], string>('SELECT filing_no FROM filing ORDER BY filing_no').pluck().all();
  assert.ok(before.every((number) => kept.includes(number)));
  // A prefix of the answered filings, without a gap.
  assert.deepEqual(kept, answered.toSorted().slice(0, kept.length));
  // If the backup blocked calls, each of the three loops would have filed once.
  assert.ok(answered.length > before.length + 3, `${answered.length} were answered`);
});

/** Runs a command, and sends it a signal once it is so far. Returns its exit code, null if the signal ended it, and its errors. */
async function interrupted(
  t: TestContext,
  words: readonly string[],
  env: Record<string, string>,
  signal: NodeJS.Signals,
  isSoFar: () => boolean,
) {
  const options = { env: commandEnvironment(env), cwd: projectFolder };
  const { child, end, stderr } = startProgram(t, ...artsealCommand(words), options);
  await eventually('the work under way', brokenAfterMs, isSoFar);
  child.kill(signal);
  return { code: await end(), errors: stderr() };
}

for (const isServed of [false, true])
  test(`a command that is stopped stops its backup${isServed ? ' by the server' : ''}, and leaves no file under its name`, async (t) => {
    const env = { ARTSEAL_DATA_DIR: await largeSandbox(t, 150) };
    const service = isServed ? await serveWatched(t, { ...env, ...quiet }) : undefined;
    for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
      const folder = temporaryFolder(t);
      const isUnderWay = () => partials(folder).some((name) => existsSync(join(folder, name, 'artseal.db')));
      const words = ['backup', join(folder, 'b.tar')];
      const { code, errors } = await interrupted(t, words, env, signal, isUnderWay);
      assert.equal(code, signal === 'SIGKILL' ? null : 1);
      if (signal === 'SIGTERM')
        assert.match(errors, /^artseal: stopped by SIGTERM; unfinished files are removed$/m);
      const left = signal === 'SIGKILL' && !isServed ? 1 : 0;
      await eventually('the end of the backup', brokenAfterMs, () => readdirSync(folder).length === left);
      assert.equal(partials(folder).length, left);
    }
    assert.equal(await service?.stop(), isServed ? 0 : undefined);
  });

test('the folder of an unfinished restore is not served, not even as a new sandbox', async (t) => {
  const dataDir = await largeSandbox(t, 60);
  const folder = temporaryFolder(t);
  const backup = join(folder, 'b.tar');
  assert.equal((await runCommand(['backup', backup], { ARTSEAL_DATA_DIR: dataDir })).code, 0);
  const into = join(folder, 'restored');
  const { code } = await interrupted(t, ['restore', backup, '--into', into], {}, 'SIGKILL', () =>
    existsSync(join(into, 'restore.partial', 'artseal.db')),
  );
  assert.equal(code, null);
  assert.ok(!existsSync(join(into, 'artseal.db')));
  assertOneLine(
    await runBounded(t, ['serve'], { ARTSEAL_DATA_DIR: into }),
    1,
    /a restore into .* did not end/,
  );
  assert.deepEqual(readdirSync(into), ['restore.partial']);
});

test('a backup that fills the disk leaves no file, and reports the disk in one line', async (t) => {
  const dataDir = await largeSandbox(t, 4);
  const folder = temporaryFolder(t);
  // Blocks of 512 or 1,024 bytes: the copy does not fit, the log of the database does.
  const script = `trap '' XFSZ; ulimit -f 2000; ${artsealInShell} backup '${join(folder, 'b.tar')}'`;
  assertOneLine(await runShell(t, script, { ARTSEAL_DATA_DIR: dataDir }), 1, /full|too large|EFBIG|I\/O/);
  assert.deepEqual(readdirSync(folder), []);
});

test('tar opens a backup, and sha256sum finds all of it right', {
  skip: skipUnlessInstalled('tar'),
}, async (t) => {
  const dataDir = temporaryFolder(t);
  const service = await startService(t, { dataDir });
  await issueSandboxCredentials(service, dataDir, tester);
  await service.close();
  const folder = temporaryFolder(t);
  const target = join(folder, 'b.tar');
  await artsealWith({ ARTSEAL_DATA_DIR: dataDir }).text(`backup ${target}`);
  execFileSync('tar', ['xf', target, '-C', folder]);
  const manifest = JSON.parse(readFileSync(join(folder, 'manifest.json'), 'utf8'));
  const names = ['artseal.db', 'simulated-provider.db', 'sandbox-credentials.json', 'master-key'];
  const checked = execFileSync('sha256sum', ['-c', 'SHA256SUMS'], { cwd: folder, encoding: 'utf8' });
  assert.deepEqual(
    checked.trim().split('\n'),
    ['manifest.json', ...names].map((name) => `${name}: OK`),
  );
  assert.deepEqual(
    manifest.files.map(({ name }: { name: string }) => name),
    names,
  );
  for (const name of ['sandbox-credentials.json', 'master-key'])
    assert.deepEqual(readFileSync(join(folder, name)), readFileSync(join(dataDir, name)));
});

test('serve takes backups regularly, catches up on a missed one, and stops during one', async (t) => {
  const dataDir = await largeSandbox(t, 40);
  const folder = temporaryFolder(t);
  const env = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_BACKUP_DIR: folder, ARTSEAL_BACKUP_KEEP: '1' };
  const first = await serveWatched(t, env);
  await eventually('the first backup', brokenAfterMs, () => first.stderr().includes('a backup was taken'));
  const metric = await eventually('the metrics', brokenAfterMs, async () => {
    const { value } = await scrape(first.metricsUrl);
    return value('artseal_backup_taken_seconds') !== 0 && value;
  });
  const agoS = Date.now() / 1_000 - (metric('artseal_backup_taken_seconds') ?? 0);
  assert.ok(agoS >= 0 && agoS < brokenAfterMs / 1_000, `taken ${agoS} s ago`);
  assert.deepEqual(
    [metric('artseal_backup_period_seconds'), metric('artseal_backup_failing')],
    [24 * 3_600, 0],
  );
  assert.equal(await first.stop(), 0, first.stderr());
  const [taken = '', ...more] = readdirSync(folder);
  assert.deepEqual(more, []);
  assert.match(taken, /^artseal-000001-\d{8}T\d{6}Z\.tar$/);
  const verified = await runCommand(['backup', 'verify', join(folder, taken)], {});
  assert.equal(verified.code, 0, verified.stderr);

  const empty = join(folder, 'empty');
  mkdirSync(empty);
  const busy = await serveWatched(t, { ...env, ARTSEAL_BACKUP_DIR: empty, TMPDIR: folder });
  await eventually('one under way', brokenAfterMs, () => partials(empty).length > 0);
  // Without TMPDIR the executable would write its addon to a folder that may be mounted noexec.
  if (process.platform === 'linux')
    assert.match(environmentOfChild(busy.child.pid), new RegExp(`^TMPDIR=${folder}$`, 'm'));
  assert.equal(await busy.stop(), 0);
  assert.deepEqual(
    readdirSync(empty).filter((name) => name.endsWith('.tar')),
    [],
  );
});
