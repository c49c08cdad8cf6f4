import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { hash } from 'node:crypto';
import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import { scalarVersion } from '../../src/http/rest/docs/reference.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { fileScope } from '../support/file-scope.ts';
import { anyAddresses } from '../support/free-address.ts';
import { copyProject } from '../support/project-copy.ts';
import { artwork } from '../support/samples.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { startProgram, toItsEnd, untilItsEnd, whenReady } from '../support/watched-command.ts';

const commit = '0123456789abcdef0123456789abcdef01234567';
const timeoutMs = 60_000;
const sizeMax = 170_000_000;
const failed = 1;
const usage = 2;

/** Builds the executable from a copy of the project in this folder; its path. */
async function buildIn(folder: string): Promise<string> {
  copyProject(folder);
  const env = { ...process.env, ARTSEAL_COMMIT: commit };
  await promisify(execFile)(process.execPath, ['build/binary.ts'], { cwd: folder, env });
  return join(folder, 'dist', 'artseal');
}

/** A machine without anything: an empty working directory, one for temporary files, and no program on the PATH. */
function emptyMachine(t: Pick<TestContext, 'after'>, more: Record<string, string> = {}) {
  const root = temporaryFolder(t);
  const [cwd, temporary] = [join(root, 'empty'), join(root, 'temporary')];
  for (const folder of [cwd, temporary]) mkdirSync(folder);
  return { cwd, temporary, env: { PATH: '', TMPDIR: temporary, ...anyAddresses, ...more } };
}
type Machine = ReturnType<typeof emptyMachine>;

/** Runs the executable to its end. */
const run = (executable: string, words: readonly string[], { cwd, env }: Machine, url = '') =>
  toItsEnd(startProgram(untilItsEnd, executable, words, { cwd, env: { ...env, ARTSEAL_URL: url } }));

/** Starts the executable as a server, and waits until it is ready. */
const serve = (t: TestContext, executable: string, machine: Machine) =>
  whenReady(startProgram(t, executable, ['serve'], machine));

describe('the executable', { timeout: 300_000 }, () => {
  let executable = '';
  let second = '';

  before(async () => {
    const folder = temporaryFolder(fileScope);
    [executable, second] = await Promise.all([
      buildIn(join(folder, 'one')),
      buildIn(join(folder, 'in', 'another', 'place')),
    ]);
  });

  /** Files an artwork by the command; its number. */
  async function file(machine: Machine, url: string): Promise<string> {
    const words = ['call', 'POST', '/api/v1/filing', JSON.stringify(artwork)];
    const { code, stdout, stderr } = await run(executable, words, machine, url);
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout).filingNo;
  }

  test('has the same bytes wherever it is built', () => {
    assert.equal(hash('sha256', readFileSync(executable)), hash('sha256', readFileSync(second)));
    assert.ok(statSync(executable).size < sizeMax);
  });

  test('prints the licenses of its contents', async (t) => {
    const { stdout } = await run(executable, ['licenses'], emptyMachine(t));
    for (const name of ['better-sqlite3', 'pg', '@connectrpc/connect', 'node-.*', 'marked', 'vue']) {
      assert.match(stdout, new RegExp(`^${name} \\d.*: .`, 'm'));
    }
    assert.deepEqual(stdout.match(/^\S+ \S+: MIT\n\n-{80}$/gm), null, 'each with its text');
  });

  test('serves without any other program, and keeps its filings after kill -9', async (t) => {
    const machine = emptyMachine(t);
    const first = await serve(t, executable, machine);
    assert.match(first.stdout(), /^ {2}artseal call POST/m);
    const filingNo = await file(machine, first.publicUrl);
    const demo = await run(executable, ['demo'], machine, first.publicUrl);
    assert.match(demo.stdout, /"event":"TRANSFER"/, demo.stderr);
    assert.deepEqual(
      Buffer.from(await (await fetch(`${first.publicUrl}/openapi.yaml`)).arrayBuffer()),
      readFileSync(join(projectFolder, 'openapi.yaml')),
    );
    const script = `docs/scalar-${scalarVersion}.js`;
    for (const page of ['docs/', 'docs/evidence', 'docs/reference', 'docs/reference.json', script])
      assert.equal((await fetch(`${first.publicUrl}/${page}`)).status, 200, page);
    await first.stop('SIGKILL');
    assert.deepEqual(readdirSync(machine.temporary), [], 'it leaves no file');

    const next = await serve(t, executable, machine);
    const target = `/api/v1/provenance/${filingNo}`;
    const read = await run(executable, ['call', 'GET', target], machine, next.publicUrl);
    assert.match(read.stdout, /"event":"SUBMITTED"/, read.stderr);
    assert.equal(await next.stop('SIGTERM'), 0, next.stderr());
  });

  test('takes a backup while it serves, restores it elsewhere, and serves it', async (t) => {
    const machine = emptyMachine(t);
    const backups = join(machine.cwd, 'backups');
    mkdirSync(backups);
    const env = { ...machine.env, ARTSEAL_BACKUP_DIR: backups };
    const first = await serve(t, executable, { ...machine, env });
    await eventually('a backup is taken', timeoutMs, () => first.stderr().includes('a backup was taken'));
    await file(machine, first.publicUrl);
    const done = async (...words: string[]) => {
      const { code, stdout, stderr } = await run(executable, words, machine);
      assert.equal(code, 0, stderr);
      return stdout;
    };
    await done('backup', 'b.tar');
    assert.match(await done('check'), /^ok +serving/m);
    await first.stop('SIGTERM');
    assert.match(await done('backup', 'verify', 'b.tar'), /^sound/m);
    assert.match(await done('restore', 'b.tar', '--into', 'elsewhere'), /^1 filings, .*\nskipped: AS-/m);
    const elsewhere = { ...machine, env: { ...machine.env, ARTSEAL_DATA_DIR: 'elsewhere' } };
    // The disk of the original can still be read, and nothing was recorded since.
    copyFileSync(
      join(machine.cwd, 'data', 'log-checkpoint'),
      join(machine.cwd, 'elsewhere', 'log-checkpoint'),
    );
    const { code, stdout } = await run(executable, ['check'], elsewhere);
    assert.equal(code, 0, stdout);
    const restored = await serve(t, executable, elsewhere);
    assert.equal(await restored.stop('SIGTERM'), 0, restored.stderr());
  });

  test('prints version and commit, by --version and in the first line of its log', async (t) => {
    const machine = emptyMachine(t);
    const { version } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'));
    assert.equal((await run(executable, ['--version'], machine)).stdout, `artseal ${version} (${commit})\n`);
    const { stderr, stop } = await serve(t, executable, machine);
    await stop('SIGTERM');
    const { time, ...first } = JSON.parse(stderr().split('\n')[0] ?? '');
    assert.deepEqual(first, { level: 30, version, commit, msg: 'starting' });
  });

  test('loads SQLite once for all its threads, since locks belong to a process', async (t) => {
    const { child } = await serve(t, executable, emptyMachine(t));
    const files = readFileSync(`/proc/${child.pid}/maps`, 'utf8').matchAll(/(\d+) +\S*better-sqlite3\.node/g);
    assert.equal(new Set(Array.from(files, ([, inode]) => inode)).size, 1);
  });

  test('passes no argument, NODE_OPTIONS or signal to the runtime', async (t) => {
    const machine = emptyMachine(t, { NODE_OPTIONS: '--inspect=0 --require=/no/such/module' });
    for (const word of ['--inspect', '--eval=1', '--node-options=--inspect']) {
      const { code, stderr } = await run(executable, [word], machine);
      assert.deepEqual(
        [code, stderr],
        [usage, `artseal: there is no command '${word}'; artseal --help lists them\n`],
      );
    }
    const { child, stop, stderr } = await serve(t, executable, machine);
    child.kill('SIGUSR1');
    child.kill('SIGHUP');
    await eventually('a later signal is answered', timeoutMs, () => /SIGHUP/.test(stderr()) || undefined);
    assert.equal(await stop('SIGTERM'), 0);
    assert.doesNotMatch(stderr(), /Debugger/);
  });

  test('says what to do if its addon cannot be loaded', async (t) => {
    const machine = emptyMachine(t, { TMPDIR: '/no/such/folder' });
    for (const word of ['init', 'serve']) {
      const { code, stderr } = await run(executable, [word], machine);
      assert.equal(code, failed);
      assert.match(
        stderr,
        /^artseal: [^\n]*\/no\/such\/folder[^\n]*; set TMPDIR to a folder [^\n]*noexec\.\n$/m,
      );
    }
    assert.equal((await run(executable, ['--help'], machine)).code, 0, '--help needs no addon');
  });
});
