import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import type { CommandResult } from '../support/command.ts';
import { eventually } from '../support/eventually.ts';
import { skipUnlessInstalled } from '../support/installed.ts';

const project = join(import.meta.dirname, '..', '..');
const boot = join(import.meta.dirname, 'machine', 'boot');

/** The longest that systemd may take to start, in milliseconds; far longer than it needs. */
const bootMs = 60_000;
/** The longest that a script may take there, in seconds. */
const scriptS = 60;

/** A Debian of the test's own, on which systemd is the first process. The project is at /project, to be read. */
export interface Machine {
  /** Runs a shell script as its root, to the end, or for a minute: then the code is 124. */
  run(script: string, input?: string): Promise<CommandResult>;
}

/** For a test's `skip`: false where machines can be made, else what is missing for it, as `skipUnlessInstalled` says it. */
export function skipUnlessBootable(): string | false {
  if (process.getuid?.() === 0) return skipUnlessInstalled('systemctl', 'unshare', 'setpriv', 'nsenter');
  const reason = 'only root can boot a machine in namespaces';
  if (process.env.ARTSEAL_TEST_REQUIRE_ALL) throw new Error(reason);
  return reason;
}

/** Boots a machine; it is ended, and what was changed on it gone, after the test. */
export async function bootMachine(test: Pick<TestContext, 'after'>): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-machine-'));
  const child = spawn(boot, [folder, project], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  test.after(async () => {
    child.kill();
    await ended;
    rmdirSync(folder);
  });
  const [firstProcess] = await once(createInterface(child.stdout), 'line');
  const namespaces = ['--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup', '--root', '--wd'];
  const run = async (script: string, input = '') => {
    const shell = ['env', '-i', `PATH=${path}`, 'timeout', `${scriptS}`, 'sh', '-c', script];
    const command = spawn('nsenter', ['--target', firstProcess, ...namespaces, ...shell]);
    command.stdin.end(input);
    const [stdout, stderr, [code]] = await Promise.all([
      text(command.stdout),
      text(command.stderr),
      once(command, 'close'),
    ]);
    return { code, stdout, stderr };
  };
  await eventually('systemd is up', bootMs, async () => {
    const { stdout } = await run('systemctl is-system-running');
    return ['running', 'degraded'].includes(stdout.trim());
  });
  return { run };
}

/** Where a root of Debian finds its commands. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
