import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { issueSandboxCredentials } from '../../src/config/sandbox-credentials.ts';
import { artsealWith } from '../support/artseal.ts';
import { artsealCommand, artsealInShell } from '../support/artseal-command.ts';
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

test('a backup that is killed leaves no file under its name; one that is stopped leaves no file at all', async (t) => {
  const dataDir = await largeSandbox(t, 150);
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const folder = temporaryFolder(t);
    const [program, words] = artsealCommand(['backup', join(folder, 'b.tar')]);
    const child = spawn(program, words, {
      env: commandEnvironment({ ARTSEAL_DATA_DIR: dataDir }),
      stdio: 'ignore',
    });
    const ended = once(child, 'close');
    await eventually('the backup under way', brokenAfterMs, () => {
      const [partial] = partials(folder);
      return partial !== undefined && existsSync(join(folder, partial, 'artseal.db'));
    });
    child.kill(signal);
    const [code, killedBy] = await ended;
    assert.deepEqual([code, killedBy], signal === 'SIGKILL' ? [null, 'SIGKILL'] : [1, null]);
    assert.ok(!existsSync(join(folder, 'b.tar')));
    assert.equal(partials(folder).length, signal === 'SIGKILL' ? 1 : 0);
  }
});

test('a command that is stopped stops the backup of the server, which leaves no file', async (t) => {
  const dataDir = await largeSandbox(t, 150);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ...quiet });
  for (const signal of ['SIGKILL', 'SIGTERM'] as const) {
    const folder = temporaryFolder(t);
    const [program, words] = artsealCommand(['backup', join(folder, 'b.tar')]);
    const child = spawn(program, words, {
      env: commandEnvironment({ ARTSEAL_DATA_DIR: dataDir }),
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    const ended = Promise.all([once(child, 'close'), text(child.stderr)]);
    await eventually('the backup under way', brokenAfterMs, () => partials(folder).length > 0);
    child.kill(signal);
    const [[code], errors] = await ended;
    assert.equal(code, signal === 'SIGKILL' ? null : 1);
    if (signal === 'SIGTERM')
      assert.match(errors, /^artseal: stopped by SIGTERM; unfinished files are removed$/m);
    await eventually('the end of the backup', brokenAfterMs, () => readdirSync(folder).length === 0);
  }
  assert.equal(await service.stop(), 0);
});

test('beside a server that hangs, commands say so, and --offline-copy takes a backup', async (t) => {
  const dataDir = temporaryFolder(t);
  const { platform } = await issueInto(dataDir, 1);
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir, ...quiet });
  const { json } = await fileArtwork(service, platform);
  const env = { ARTSEAL_DATA_DIR: dataDir };
  const target = join(temporaryFolder(t), 'b.tar');
  service.child.kill('SIGSTOP');
  try {
    assertOneLine(
      await runBounded(t, ['backup', target], env),
      1,
      /the server of .* does not respond .*: see docs\/operate\/incidents\/server-hangs\.md/,
    );
    const { code, stdout, stderr } = await runCommand(['backup', target, '--offline-copy'], env);
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`^1 filings to ${json.filingNo},`, 'm'));
    const verified = await runCommand(['backup', 'verify', target, '--offline-copy'], env);
    assert.match(verified.stdout, /^sound: /m);
    const checked = await runCommand(['check'], env);
    assert.match(checked.stdout, /^ok +database /m);
  } finally {
    service.child.kill('SIGCONT');
  }
  assert.equal(await service.stop('SIGKILL'), null);
});

test('the folder of an unfinished restore is not served, not even as a new sandbox', async (t) => {
  const dataDir = await largeSandbox(t, 60);
  const folder = temporaryFolder(t);
  const backup = join(folder, 'b.tar');
  assert.equal((await runCommand(['backup', backup], { ARTSEAL_DATA_DIR: dataDir })).code, 0);
  const into = join(folder, 'restored');
  const [program, words] = artsealCommand(['restore', backup, '--into', into]);
  const child = spawn(program, words, { env: commandEnvironment({}), stdio: 'ignore' });
  const ended = once(child, 'close');
  await eventually('the restore under way', brokenAfterMs, () =>
    existsSync(join(into, 'restore.partial', 'artseal.db')),
  );
  child.kill('SIGKILL');
  assert.deepEqual(await ended, [null, 'SIGKILL']);
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

  // No backup is due yet.
  const rotate = ['backup', 'rotate', '--into', folder, '--keep', '1'];
  const young = await runCommand([...rotate, '--if-older-than', '24h'], { ARTSEAL_DATA_DIR: dataDir });
  assert.match(young.stdout, /not taken: the last one is young enough/);
  assert.deepEqual(readdirSync(folder), [taken]);

  // A folder that is missing, as on a disk that was not mounted, is an error in the log.
  const away = await serveWatched(t, { ...env, ARTSEAL_BACKUP_DIR: join(folder, 'away') });
  await eventually('the failure', brokenAfterMs, () => away.stderr().includes('no backup could be taken'));
  assert.match(away.stderr(), /"level":50,.*"reason":"[^"]*away[^"]*","msg":"no backup could be taken/);
  const failing = async () => (await scrape(away.metricsUrl)).value('artseal_backup_failing') === 1;
  await eventually('the metric', brokenAfterMs, failing);
  assert.equal(await away.stop(), 0);

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
