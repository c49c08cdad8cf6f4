import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { furtherOnPostgres, furtherSchema, presentSchema } from '../store/further-migration.ts';
import { projectFolder } from '../support/artseal-command.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { skipUnlessInstalled } from '../support/installed.ts';
import { sharedDeployment } from '../support/instances.ts';
import { type IssuedPlatform, issueInto } from '../support/issued.ts';
import { runSql, skipUnlessPostgres } from '../support/postgres.ts';
import { copyProject } from '../support/project-copy.ts';
import { artwork } from '../support/samples.ts';
import { headersOf } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { commandEnvironment, startProgram, toItsEnd, whenReady } from '../support/watched-command.ts';
import { reverseProxies, startProxy } from './reverse-proxies.ts';

/** The longest wait for something that has to happen, in milliseconds. */
const timeoutMs = 60_000;
const filers = 8;
/** Between two calls of a client, which sends fewer than its platform may send. In milliseconds. */
const pauseMs = 10;

/** A copy of the project that is a later version: it knows a further migration. */
function makeLaterVersion(t: TestContext): string {
  const folder = temporaryFolder(t);
  copyProject(folder);
  const at = (...path: readonly string[]) => join(folder, 'src', 'store', ...path);
  writeFileSync(at('sqlite', 'migrations', `${furtherOnPostgres.name}.sql`), '');
  writeFileSync(at('postgres', 'migrations', `${furtherOnPostgres.name}.sql`), furtherOnPostgres.sql);
  const journal = at('sqlite', 'migrations', 'meta', '_journal.json');
  const { entries, ...rest } = JSON.parse(readFileSync(journal, 'utf8'));
  const entry = { ...entries.at(-1), idx: entries.length, tag: furtherOnPostgres.name };
  writeFileSync(journal, JSON.stringify({ ...rest, entries: [...entries, entry] }));
  return folder;
}

/** Starts HAProxy with these servers in place of the one of deploy/haproxy.cfg. An instance that is not ready gets no calls. */
function startHaproxy(t: TestContext, addresses: readonly string[]): Promise<string> {
  const nowhere = '127.0.0.1:1';
  const servers = addresses.map(
    (address, nth) => `server app${nth} ${address} check inter 500ms fall 2 rise 1`,
  );
  const lines = ['option httpchk GET /readyz', 'option redispatch 1', ...servers].map(
    (line) => `    ${line}\n`,
  );
  return startProxy(t, reverseProxies.haproxy, `http://${nowhere}`, (configuration) =>
    configuration.replace(`    server artseal ${nowhere}\n`, lines.join('')),
  );
}

/** Waits for events of the first platform, and files for the others, on kept connections. Each call is sent once. */
function callSteadily(t: TestContext, url: string, [waiting, ...filing]: readonly IssuedPlatform[]) {
  const failures: string[] = [];
  const filed: string[] = [];
  let isStopped = false;
  t.after(() => {
    isStopped = true;
  });

  async function call(agent: Agent, platform: IssuedPlatform | undefined, target: string, body?: string) {
    assert.ok(platform);
    const method = body === undefined ? 'GET' : 'POST';
    const headers = headersOf(platform, { method, target, ...(body !== undefined && { body }) });
    const { hostname, port } = new URL(url);
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    request({ hostname, port, agent, method, path: target, headers }, (response) => {
      text(response).then((answer) => {
        if (response.statusCode === 200) resolve(answer);
        else reject(new Error(`${response.statusCode} ${answer}`));
      }, reject);
    })
      .on('error', reject)
      .end(body);
    return JSON.parse(await promise);
  }

  async function repeat(work: (agent: Agent) => Promise<unknown>): Promise<void> {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    while (!isStopped) {
      await work(agent).catch((error) => failures.push(String(error)));
      await delay(pauseMs);
    }
    agent.destroy();
  }

  const file = (platform: IssuedPlatform) => async (agent: Agent) =>
    filed.push((await call(agent, platform, '/api/v1/filing', JSON.stringify(artwork))).filingNo);
  const poll = (agent: Agent) => call(agent, waiting, '/api/v1/events?waitSeconds=20');
  const working = [...filing.map(file), poll, poll].map(repeat);
  return {
    filed,
    failures,
    stop: async () => {
      isStopped = true;
      await Promise.all(working);
    },
  };
}

test('two instances are upgraded one after the other, and no call fails', {
  skip: skipUnlessPostgres() || skipUnlessInstalled('openssl', 'haproxy'),
  timeout: 5 * timeoutMs,
}, async (t) => {
  const { url: databaseUrl, settings } = await sharedDeployment(t);
  const { platforms } = await issueInto(temporaryFolder(t), 1 + filers, settings);
  const laterVersion = makeLaterVersion(t);
  const start = (cwd: string, word: string, env: Record<string, string>) =>
    startProgram(t, join(cwd, 'node_modules', '.bin', 'node'), ['src/main.ts', word], {
      env: commandEnvironment({ ...settings, ARTSEAL_DRAIN_DELAY: '3', ...env }),
      cwd,
    });
  const serve = async () => {
    const env = { ARTSEAL_DATA_DIR: temporaryFolder(t), ARTSEAL_PUBLIC_ADDR: await freeAddress() };
    return { env, service: await whenReady(start(projectFolder, 'serve', env)) };
  };
  const instances = [await serve(), await serve()];
  const addresses = instances.map(({ env }) => env.ARTSEAL_PUBLIC_ADDR);
  const calls = callSteadily(t, await startHaproxy(t, addresses), platforms);
  const allAreCalled = () => {
    const before = instances.map(({ service }) => service.logLines('CreateFiling').length);
    return eventually('all instances are called', timeoutMs, () =>
      instances.every(
        ({ service }, nth) => service.logLines('CreateFiling').length > (before[nth] ?? 0) + filers,
      ),
    );
  };
  /** The schemas that the instances know, and whether one of them leads. */
  const known = async () => {
    const rows = await runSql<{ schema: string; is_leading: boolean }>(
      databaseUrl,
      'SELECT schema, is_leading FROM instance ORDER BY joined_at',
    );
    return [rows.map(({ schema }) => Number(schema)), rows.filter((row) => row.is_leading).length];
  };

  await allAreCalled();
  const upgrade = await toItsEnd(
    start(laterVersion, 'upgrade', { ARTSEAL_DATA_DIR: instances[0]?.env.ARTSEAL_DATA_DIR ?? '' }),
  );
  assert.match(upgrade.stdout, new RegExp(`had schema ${presentSchema} and has schema ${furtherSchema} now`));
  await allAreCalled();
  assert.deepEqual(await known(), [[presentSchema, presentSchema], 1]);
  for (const instance of instances) {
    assert.equal(await instance.service.stop(), 0, instance.service.stderr());
    await eventually('the other one leads', timeoutMs, async () => (await known())[1] === 1);
    instance.service = await whenReady(start(laterVersion, 'serve', instance.env));
    await allAreCalled();
  }
  assert.deepEqual(await known(), [[furtherSchema, furtherSchema], 1]);
  await calls.stop();
  assert.deepEqual(calls.failures, []);
  const rows = await runSql<{ filing_no: string }>(databaseUrl, 'SELECT filing_no FROM filing ORDER BY id');
  assert.deepEqual(
    rows.map((row) => row.filing_no),
    calls.filed.toSorted(),
  );
});
