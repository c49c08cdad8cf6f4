import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { eventually } from '../support/eventually.ts';
import { skipUnlessUnshared } from '../support/namespaces.ts';
import type { BoundedResult } from '../support/watched-command.ts';

/** The namespaces of a machine. */
const ownNamespaces = ['--mount', '--pid', '--net', '--uts', '--ipc', '--cgroup'];
const boot = join(import.meta.dirname, 'machine', 'boot');

/** How long systemd may take to start, in milliseconds. */
const bootMs = 60_000;
/** How long a script may take there, in seconds. */
const scriptS = 60;

/** A Debian for one test, on which systemd is the first process. */
export interface Machine {
  /** Runs a shell script as root. After a minute it is ended with the code 124. */
  run(script: string): Promise<BoundedResult>;
  /** The id of its first process, which has its namespaces. */
  readonly firstProcess: string;
}

/** For a test's `skip`: false if machines can be made, which takes root, else the reason, as `skipUnlessUnshared` gives it. */
export function skipUnlessBootable(): string | false {
  const layers = 'lowerdir=/,upperdir=/mnt/upper,workdir=/mnt/work';
  const mounts = `mount -t tmpfs none /mnt && mkdir /mnt/upper /mnt/work /mnt/disk && mount -t overlay -o ${layers} none /mnt/disk`;
  const where = `$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)/artseal-trial-$$`;
  const groups = `mkdir "${where}" && rmdir "${where}" && mount -t cgroup2 none /sys/fs/cgroup`;
  const trial = [
    ...ownNamespaces,
    '--fork',
    '--propagation',
    'private',
    'sh',
    '-ec',
    `${mounts} && ${groups}`,
  ];
  return skipUnlessUnshared(trial, 'systemctl', 'setpriv', 'nsenter');
}

/**
 * Boots a machine that has a copy-on-write view of this machine's files, and those of a folder at /media. It ends after
 * the test.
 */
export async function bootMachine(test: Pick<TestContext, 'after'>, media: string): Promise<Machine> {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-machine-'));
  const child = spawn(boot, [folder, media], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'close');
  test.after(async () => {
    child.kill();
    assert.deepEqual(await ended, [0, null], 'the machine leaves nothing');
    rmdirSync(folder);
  });
  const [firstProcess] = await Promise.race([once(createInterface(child.stdout), 'line'), ended]);
  if (typeof firstProcess !== 'string') throw new Error('no machine could be made; standard error says why');
  const run = async (script: string) => {
    const shell = ['env', '-i', `PATH=${path}`, 'timeout', `${scriptS}`, 'sh', '-c', script];
    const words = ['--target', firstProcess, ...ownNamespaces, '--root', '--wd', ...shell];
    const command = spawn('nsenter', words, { stdio: ['ignore', 'pipe', 'pipe'] });
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
  return { run, firstProcess };
}

/** Where a root of Debian finds its commands. */
const path = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
