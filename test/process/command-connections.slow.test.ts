import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { ApiCredentials } from '../../src/client/sign.ts';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { makeAuthority } from '../support/certificates.ts';
import { eventually } from '../support/eventually.ts';
import { issueInto, serveIssued } from '../support/issued.ts';
import { listenLocally } from '../support/local-server.ts';
import { stripeSettings } from '../support/samples.ts';
import { headersOf, send } from '../support/signed-request.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  assertOneLine,
  commandEnvironment,
  runBounded,
  runCommand,
  serveWatched,
  startProgram,
  type WatchedService,
  whenReady,
} from '../support/watched-command.ts';

type Env = Record<string, string>;

/** A command gives up on a server that hangs within this time, in milliseconds. */
const givesUpMs = 40_000;
const namesPage = /: see docs\/operate\/incidents\/server-hangs\.md\.?$/m;

let galleries = 0;

/** The words that create a key of a new platform. */
function toCreate(...more: readonly string[]): string[] {
  galleries += 1;
  return ['key', 'create', '--name', `gallery ${galleries}`, '--tier', 'TRIAL', '--json', ...more];
}

async function createKey(env: Env, ...more: readonly string[]): Promise<ApiCredentials> {
  const { code, stdout, stderr } = await runCommand(toCreate(...more), env);
  assert.deepEqual([code, stderr], [0, '']);
  return JSON.parse(stdout);
}

async function assertAccepted(
  { publicUrl }: Pick<WatchedService, 'publicUrl'>,
  key: ApiCredentials,
): Promise<void> {
  const { json } = await send(publicUrl, key, { target: '/api/v1/provenance/AS-2026-999999' });
  assert.equal(json.code, 'FILING_NOT_FOUND');
}

/** A server that starts, and asks a provider that does not respond: it has its folder, and no listener yet. */
async function startSlowly(t: TestContext) {
  const provider = createServer();
  const env = {
    ARTSEAL_DATA_DIR: temporaryFolder(t),
    ...stripeSettings,
    ARTSEAL_STRIPE_URL: await listenLocally(t, provider, () => {}),
  };
  await issueInto(env.ARTSEAL_DATA_DIR, 0, env);
  const asked = once(provider, 'connection');
  const server = startProgram(t, ...artsealCommand(['serve']), {
    env: commandEnvironment(env),
    cwd: projectFolder,
  });
  await asked;
  return { env, server };
}

test('a key that a command created works after a kill -9 of the server', async (t) => {
  const env = { ARTSEAL_DATA_DIR: temporaryFolder(t) };
  const killed = await serveWatched(t, env);
  const keys = [await createKey(env)];
  assert.equal(await killed.stop('SIGKILL'), null);
  // Nobody listens on the socket that the killed server left.
  keys.push(await createKey(env));
  const restarted = await serveWatched(t, env);
  keys.push(await createKey(env));
  for (const key of keys) await assertAccepted(restarted, key);
});

test('a command waits for a server that starts', async (t) => {
  const { env, server } = await startSlowly(t);
  const [ready, key] = await Promise.all([whenReady(server), createKey(env)]);
  await assertAccepted(ready, key);
});

test('a command waits for a server that stops and waits for its calls', async (t) => {
  const service = await serveIssued(t);
  const { dataDir, platform, publicUrl } = service;
  const target = '/api/v1/filing';
  const headers = headersOf(platform, { target, body: '{}', headers: { Expect: '100-continue' } });
  const unfinished = request(`${publicUrl}${target}`, { method: 'POST', headers }).on('error', () => {});
  t.after(() => unfinished.destroy());
  unfinished.flushHeaders();
  await once(unfinished, 'continue');
  const stopped = service.stop();
  await eventually('the socket is closed', 60_000, () => !existsSync(join(dataDir, 'admin.sock')));
  await createKey({ ARTSEAL_DATA_DIR: dataDir });
  assert.equal(await stopped, 0);
  assert.match(service.stderr(), /the connections that are still open are cut off/);
});

test('a command gives up on a server that hangs while it starts', async (t) => {
  const { env, server } = await startSlowly(t);
  server.child.kill('SIGSTOP');
  assertOneLine(
    await runBounded(t, toCreate(), env, givesUpMs),
    1,
    /is in use, and its server does not respond/,
    namesPage,
  );
});

test('a command gives up on a server that hangs, which then still works', async (t) => {
  const { dataDir, token, internalUrl, child, publicUrl } = await serveIssued(t);
  const local = { ARTSEAL_DATA_DIR: dataDir };
  const remote = ['--url', internalUrl];
  child.kill('SIGSTOP');
  const results = await Promise.all([
    runBounded(t, toCreate(), local, givesUpMs),
    runBounded(t, toCreate(...remote), { ARTSEAL_TOKEN: token }, givesUpMs),
  ]);
  for (const result of results) assertOneLine(result, 1, /does not respond/, namesPage);
  const { stdout } = await runBounded(t, ['check'], local);
  assert.match(stdout, /^fault +serving +the process \d+ .*, but does not respond: see .*server-hangs\.md$/m);
  child.kill('SIGCONT');
  await assertAccepted({ publicUrl }, await createKey(local));
  await assertAccepted({ publicUrl }, await createKey({ ARTSEAL_TOKEN: token }, ...remote));
});

test('a remote command trusts a private authority, and shows the certificate that the server requires', async (t) => {
  const authority = makeAuthority(t);
  const [own, client] = [authority.issue('server'), authority.issue('client')];
  const service = await serveIssued(t, {
    ARTSEAL_INTERNAL_TLS_CERT: own.certificateFile,
    ARTSEAL_INTERNAL_TLS_KEY: own.keyFile,
    ARTSEAL_INTERNAL_TLS_CLIENT_CA: authority.certificateFile,
  });
  const remote = ['--url', service.internalUrl];
  const trusting = { ARTSEAL_TOKEN: service.token, ARTSEAL_CLIENT_CA_FILE: authority.certificateFile };
  const known = {
    ...trusting,
    ARTSEAL_CLIENT_CERT_FILE: client.certificateFile,
    ARTSEAL_CLIENT_KEY_FILE: client.keyFile,
  };
  await assertAccepted(service, await createKey(known, ...remote));
  const { ARTSEAL_CLIENT_CA_FILE: _, ...distrusting } = known;
  for (const [env, reason] of [
    [distrusting, /does not respond \(self-signed certificate in certificate chain\)$/m],
    [trusting, /does not respond \(.*alert certificate required/],
    [{ ...known, ARTSEAL_CLIENT_KEY_FILE: own.keyFile }, /key values mismatch/],
    [{ ...known, ARTSEAL_CLIENT_CA_FILE: '/nowhere' }, /\/nowhere does not exist/],
  ] as const) {
    assertOneLine(await runBounded(t, toCreate(...remote), env), 1, reason);
  }
});
