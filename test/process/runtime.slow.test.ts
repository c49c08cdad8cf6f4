import assert from 'node:assert/strict';
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { runtimeFlags } from '../../src/packaging/runtime.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { commandEnvironment } from '../support/watched-command.ts';

/** The longest wait for an event. */
const timeoutMs = 60_000;
const probe = pathToFileURL(join(import.meta.dirname, 'children', 'runtime-probe.mjs'));

/** All ways to start the service, as shell scripts. */
const ways = {
  'npm start': 'npm start',
  'npm run artseal -- serve': 'npm run artseal -- serve',
  'the linked command': 'PATH="$LINKS:$PATH" artseal serve',
  'Node itself, as a supervisor runs it': 'exec node src/main.ts serve',
  'npm run dev': 'npm run dev',
};

test('npm start passes the flags itself, which saves a restart', () => {
  const { scripts } = JSON.parse(readFileSync(join(projectFolder, 'package.json'), 'utf8'));
  assert.equal(scripts.start, `node ${runtimeFlags.join(' ')} src/main.ts serve`);
});

/** A running process group, and its output. */
function startGroup(t: TestContext, script: string, env: Record<string, string>) {
  const child = spawn('sh', ['-c', script], {
    cwd: projectFolder,
    env: commandEnvironment(env),
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => killGroup(child));
  let written = '';
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (chunk) => {
      written += chunk;
    });
  }
  const wrote = (pattern: RegExp) =>
    eventually(`${script}: ${pattern}`, timeoutMs, () => {
      assert.equal(child.exitCode, null, written);
      return pattern.exec(written) ?? undefined;
    });
  return { child, wrote, written: () => written };
}

function killGroup({ pid, exitCode, signalCode }: ChildProcess): void {
  if (pid !== undefined && exitCode === null && signalCode === null) process.kill(-pid, 'SIGKILL');
}

/** Starts a service with NODE_OPTIONS, and waits until it is ready. */
async function serving(t: TestContext, script: string, nodeOptions = '') {
  const folder = temporaryFolder(t);
  symlinkSync(join(projectFolder, 'src', 'main.ts'), join(folder, 'artseal'));
  const group = startGroup(t, script, {
    LINKS: folder,
    PROBE_FOLDER: folder,
    // An inspector announces itself on standard error.
    NODE_OPTIONS: `--import=${probe} --inspect-port=0 ${nodeOptions}`,
    ARTSEAL_DATA_DIR: join(folder, 'data'),
  });
  const [, publicUrl = ''] = await group.wrote(/^artseal ready public=(\S+)/m);
  return { ...group, publicUrl, folder, pid: Number(readFileSync(join(folder, 'pid'), 'utf8')) };
}

/** The heap limit of a service, in bytes. */
const heapLimitOf = ({ folder }: { folder: string }): number =>
  Number(readFileSync(join(folder, 'heap-limit'), 'utf8'));

/**
 * The heap limit of Node with these flags, in bytes. Unlike the size of the heap it does not depend on the load, and a smaller
 * young heap lowers it.
 */
function heapLimitWith(...flags: readonly string[]): number {
  const words = [...flags, '--print', 'v8.getHeapStatistics().heap_size_limit'];
  return Number(execFileSync(process.execPath, words, { env: {}, encoding: 'utf8' }));
}

/** A process of Node that opens its inspector on SIGUSR1, which is the default. */
async function openInspectorElsewhere(t: TestContext): Promise<void> {
  const script = 'exec node --inspect-port=0 -e "console.log(1); setInterval(() => {}, 1000)"';
  const other = startGroup(t, script, {});
  await other.wrote(/^1$/m);
  process.kill(other.child.pid ?? 0, 'SIGUSR1');
  await other.wrote(/Debugger listening/);
}

test('the linked command can be run', () => {
  assert.equal(statSync(join(projectFolder, 'src', 'main.ts')).mode & 0o111, 0o111);
});

describe('the service, however it is started,', { concurrency: 2, timeout: 300_000 }, () => {
  for (const [way, script] of Object.entries(ways)) {
    test(`${way}: has a small young heap, opens no inspector and does not end at SIGHUP`, async (t) => {
      const service = await serving(t, script);
      const { pid, wrote, written, publicUrl } = service;
      assert.equal(heapLimitOf(service), heapLimitWith('--max-semi-space-size=16'));

      process.kill(pid, 'SIGUSR1');
      await openInspectorElsewhere(t);
      assert.doesNotMatch(written(), /Debugger listening/);

      process.kill(pid, 'SIGHUP');
      await wrote(/"level":30.*SIGHUP/);
      assert.equal((await fetch(publicUrl)).status, 200);
    });
  }

  test('reads a master key from a pipe, and keeps the young heap of NODE_OPTIONS', async (t) => {
    const script = `echo main:${'ab'.repeat(32)} | ARTSEAL_MASTER_KEY_FILE=/dev/stdin node src/main.ts serve`;
    const service = await serving(t, script, '--max-semi-space-size=2');
    assert.equal(existsSync(join(service.folder, 'data', 'master-key')), false, 'the given key is used');
    assert.equal(heapLimitOf(service), heapLimitWith('--max-semi-space-size=2'));
  });
});
