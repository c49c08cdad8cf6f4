import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { Agent, get } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { json } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { fileArtwork } from '../support/calls.ts';
import { skipOnPostgres } from '../support/engine.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto, serveIssued } from '../support/issued.ts';
import { scrape } from '../support/metrics.ts';
import { skipUnlessUnshared } from '../support/namespaces.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  assertOneLine,
  commandEnvironment,
  runShell,
  serveWatched,
  type WatchedService,
} from '../support/watched-command.ts';

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;
/** The period and the number of readiness checks: together longer than readiness takes to return. */
const [lookEveryMs, looks] = [250, 32];
/** Enough for the service, small enough to be filled at once. */
const diskMiB = 8;

const statusOf = async ({ publicUrl }: WatchedService, path: string): Promise<number> => {
  const answer = await fetch(`${publicUrl}${path}`);
  await answer.bytes();
  return answer.status;
};

/** Log lines about readiness. */
const readinessLines = ({ logged }: WatchedService) =>
  logged().filter(({ msg }) => /^(not )?ready/.test(msg));

/** How long a service drained, by its log. */
function drainedMs({ logged }: WatchedService): number {
  const begun = logged().find(({ msg }) => msg.startsWith('draining'));
  const ended = logged().find(({ msg }) => msg === 'closing');
  return Date.parse(ended.time) - Date.parse(begun.time);
}

/** Root of a namespace with mounts of its own. */
const ownMounts = ['--map-root-user', '--mount'];

const diskIsMounted = [...ownMounts, 'mount', '-t', 'tmpfs', 'none', tmpdir()];

/** Serves on a small, empty disk; `onDisk` is the path of the data folder for this process. */
async function serveOnSmallDisk(t: TestContext) {
  const dataDir = temporaryFolder(t);
  const mount = `mount -t tmpfs -o size=${diskMiB}m,mode=700 none "$ARTSEAL_DATA_DIR" && exec "$@"`;
  const launcher = ['unshare', ...ownMounts, 'sh', '-c', mount, 'sh'];
  const service = await serveWatched(t, { ARTSEAL_DATA_DIR: dataDir }, launcher);
  const onDisk = join('/proc', String(service.child.pid), 'root', dataDir);
  const { apiKey, apiSecret } = JSON.parse(readFileSync(join(onDisk, 'sandbox-credentials.json'), 'utf8'));
  const file = () => fileArtwork(service, { apiKey, apiSecret });
  const fillUp = async () => {
    const { stderr } = spawnSync('dd', ['if=/dev/zero', `of=${join(onDisk, 'fill')}`, 'bs=4096']);
    assert.match(String(stderr), /No space left/);
    await eventually('a filing is refused', timeoutMs, async () => (await file()).status === 503);
  };
  /** Runs `artseal check` where the disk is mounted. */
  const check = () => {
    const namespaces = ['--user', '--preserve-credentials', '--mount'];
    const words = ['--target', String(service.child.pid), ...namespaces, '--'];
    const env = commandEnvironment({ ARTSEAL_DATA_DIR: dataDir });
    const command = [...words, ...artsealCommand(['check']).flat()];
    return spawnSync('nsenter', command, { env, cwd: projectFolder, encoding: 'utf8' });
  };
  return { service, file, fillUp, check, makeRoom: () => rmSync(join(onDisk, 'fill')) };
}

test('commands name a path on a disk that is mounted read-only, and what to do', {
  skip: skipOnPostgres('its commands are about backups') || skipUnlessUnshared(diskIsMounted, 'mount'),
  timeout: 300_000,
}, async (t) => {
  const [dataDir, folder] = [temporaryFolder(t), temporaryFolder(t)];
  await issueInto(dataDir, 1);
  /** Runs `artseal` where a folder is mounted read-only. */
  const onReadOnly = (path: string, words: readonly string[], env: Record<string, string>) => {
    const mounts = `mount --bind "${path}" "${path}" && mount -o remount,ro,bind "${path}"`;
    const [program, rest] = artsealCommand(words);
    const command = [program, ...rest].map((word) => `'${word}'`).join(' ');
    const script = `exec unshare ${ownMounts.join(' ')} sh -c "$SCRIPT"`;
    const variables = { ARTSEAL_DATA_DIR: dataDir, ...env };
    return runShell(t, script, { ...variables, SCRIPT: `${mounts} && exec ${command}` });
  };
  const hint = 'is on a disk that is mounted read-only: mount it for writing, or name another place';
  const served = await onReadOnly(dataDir, ['serve'], {});
  assertOneLine(served, 1, new RegExp(`${dataDir}\\S* ${hint}`));
  const rotated = await onReadOnly(folder, ['backup', 'rotate', '--into', folder, '--keep', '2'], {});
  assertOneLine(rotated, 1, new RegExp(`${folder}\\S* ${hint}`));
  const checked = await onReadOnly(folder, ['check'], { ARTSEAL_BACKUP_DIR: folder });
  assert.match(checked.stdout, new RegExp(`^fault +backup .*${folder} ${hint}`, 'm'));
});

test('a rejected filing makes the server not ready at once, until writes have succeeded for seconds', {
  skip: skipOnPostgres('the disk is that of SQLite') || skipUnlessUnshared(diskIsMounted, 'mount', 'nsenter'),
  timeout: 300_000,
}, async (t) => {
  const { service, file, fillUp, check, makeRoom } = await serveOnSmallDisk(t);
  assert.equal(await statusOf(service, '/readyz'), 200);
  for (let time = 1; time <= 2; time += 1) {
    await fillUp();
    assert.equal(await statusOf(service, '/readyz'), 503, 'at once');
    // As if a load balancer had removed the server: no calls come, and the disk stays full.
    for (let look = 0; look < looks; look += 1) {
      await delay(lookEveryMs);
      const refused = await fetch(`${service.publicUrl}/readyz`);
      const { code, message } = (await refused.json()) as { code: string; message: string };
      assert.deepEqual([code, message], ['UNAVAILABLE', 'Not ready: store.']);
    }
    assert.equal(await statusOf(service, '/healthz'), 200, 'the process is well');
    const { status, stdout } = check();
    assert.equal(status, 1);
    assert.match(stdout, /^fault +disk .*(ENOSPC|make room)/m);
    assert.equal((await scrape(service.metricsUrl)).value('artseal_ready_part', { part: 'store' }), 0);
    assert.equal((await file()).status, 503);
    makeRoom();
    // Without any request the service finds out by itself.
    await eventually('it is ready', timeoutMs, () => readinessLines(service).length === 2 * time);
    assert.equal(await statusOf(service, '/readyz'), 200);
    assert.equal((await file()).status, 200);
  }

  assert.equal(await service.stop(), 0, service.stderr());
  const lines = readinessLines(service);
  assert.deepEqual(
    lines.map(({ level, msg }) => [level, msg]),
    Array.from({ length: 2 }, () => [
      [40, 'not ready: store'],
      [30, 'ready again'],
    ]).flat(),
    'each change once, whatever the number of requests',
  );
  const fault = 'a write failed: database or disk is full';
  assert.deepEqual(lines[0].faults, [{ part: 'store', fault }]);
  const calls = service.logged().filter(({ msg }) => msg === 'call');
  assert.ok(
    calls.every(({ operation }) => operation.includes('Filing')),
    'health checks leave no lines',
  );
});

describe('a service with a drain delay', { concurrency: 2, timeout: 300_000 }, () => {
  test('says that it is not ready, takes calls as before, and ends at once at a second signal', async (t) => {
    const service = await serveIssued(t, { ARTSEAL_DRAIN_DELAY: '60' });
    service.child.kill('SIGTERM');
    await eventually('it is not ready', timeoutMs, async () => (await statusOf(service, '/readyz')) === 503);
    assert.equal(await statusOf(service, '/healthz'), 200);
    // Over a new connection, as of a client that does not know yet.
    assert.equal((await fileArtwork(service, service.platform)).status, 200);
    service.child.kill('SIGTERM');
    assert.equal(await service.end(), 0, service.stderr());
    assert.ok(drainedMs(service) < 60_000, 'the rest of the delay is not waited for');
    assert.deepEqual(readinessLines(service)[0].faults, [
      { part: 'draining', fault: 'the server is stopping' },
    ]);
  });

  test('ends by itself when it is over, whatever connections are kept', async (t) => {
    const service = await serveIssued(t, { ARTSEAL_DRAIN_DELAY: '1' });
    const agent = new Agent({ keepAlive: true });
    t.after(() => agent.destroy());
    const ask = () =>
      new Promise((resolve, reject) => {
        get(`${service.publicUrl}/readyz`, { agent }, (answer) => json(answer).then(resolve, reject)).on(
          'error',
          reject,
        );
      });
    assert.deepEqual(await ask(), { status: 'ok' });
    assert.equal(await service.stop('SIGINT'), 0);
    assert.ok(drainedMs(service) >= 0);
    assert.doesNotMatch(service.stderr(), /connections that are still open are cut off/);
  });
});
