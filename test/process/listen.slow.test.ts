import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { Webhook } from 'standardwebhooks';
import { verifyWebhook } from '../../clients/typescript/src/webhook.ts';
import { createRestClient } from '../../src/client/rest.ts';
import { readSandboxCredentials } from '../../src/config/sandbox-credentials.ts';
import { artsealCommand, projectFolder } from '../support/artseal-command.ts';
import { fileArtwork } from '../support/calls.ts';
import { eventually } from '../support/eventually.ts';
import { freeAddress } from '../support/free-address.ts';
import { listenLocally } from '../support/local-server.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { commandEnvironment, serveWatched, startProgram } from '../support/watched-command.ts';

const limitMs = 60_000;

/** A webhook as it arrived. */
interface Arrived {
  readonly path: string | undefined;
  readonly headers: IncomingHttpHeaders;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

/** A program of a developer that receives webhooks. It responds with `status`. */
async function openReceiver(t: TestContext) {
  const arrived: Arrived[] = [];
  const receiver = { arrived, status: 204, url: '' };
  const server = createServer(async (request, response) => {
    const { url: path, headers, rawHeaders } = request;
    arrived.push({ path, headers, rawHeaders, body: (await buffer(request)).toString() });
    response.writeHead(receiver.status).end();
  });
  receiver.url = await listenLocally(t, server, () => server.closeAllConnections());
  return receiver;
}

/** A sandbox at an address that stays the same, and a developer who has only its address, key and secret. */
async function openSandbox(t: TestContext) {
  const dataDir = join(temporaryFolder(t), 'data');
  const settings = { ARTSEAL_DATA_DIR: dataDir, ARTSEAL_PUBLIC_ADDR: await freeAddress() };
  const serve = () => serveWatched(t, settings);
  const service = await serve();
  const platform = readSandboxCredentials(dataDir) ?? assert.fail();
  const env = {
    ARTSEAL_DATA_DIR: join(dataDir, 'none'),
    ARTSEAL_URL: service.publicUrl,
    ARTSEAL_API_KEY: platform.apiKey,
    ARTSEAL_API_SECRET: platform.apiSecret,
  };
  const listen = (...words: string[]) =>
    startProgram(t, ...artsealCommand(['listen', ...words]), {
      env: commandEnvironment(env),
      cwd: projectFolder,
    });
  return { serve, service, platform, listen };
}

const sequencesAt = ({ arrived }: { arrived: readonly Arrived[] }, path: string) =>
  arrived.filter((one) => one.path === path).map(({ body }) => JSON.parse(body).data.sequence);
const named = ({ rawHeaders }: Arrived) => rawHeaders.filter((_, place) => place % 2 === 0);

test('listen forwards events as the service sends webhooks, over restarts, until it is interrupted', {
  timeout: 300_000,
}, async (t) => {
  const { serve, service, platform, listen } = await openSandbox(t);
  const receiver = await openReceiver(t);
  const { arrived } = receiver;
  await fileArtwork(service, platform);
  const listening = listen('--forward-to', `${receiver.url}/hooks`);
  const printed = (pattern: RegExp) =>
    eventually(`${pattern}`, limitMs, () => pattern.exec(listening.stdout()) ?? undefined);
  const [, secret = ''] = await printed(/^Signing secret: (whsec_\S+)$/m);
  await printed(/^Forwarding events after 1 to http:\/\/127\.0\.0\.1:\d+\/hooks$/m);

  await t.test('what arrives verifies, and equals a webhook of the service', async () => {
    const client = createRestClient(service.publicUrl, platform);
    const endpoint = JSON.stringify({ url: `${receiver.url}/endpoint` });
    const added = await client.send('POST', '/api/v1/webhooks', endpoint);
    assert.equal(added.status, 200);
    await fileArtwork(service, platform);
    await eventually('both webhooks', limitMs, () => arrived.length === 2);
    const forwarded = arrived.find(({ path }) => path === '/hooks') ?? assert.fail();
    const delivered = arrived.find(({ path }) => path === '/endpoint') ?? assert.fail();
    assert.equal(forwarded.body, delivered.body);
    assert.deepEqual(named(forwarded), named(delivered));
    for (const name of ['webhook-id', 'content-type', 'user-agent', 'accept-encoding', 'content-length'])
      assert.equal(forwarded.headers[name], delivered.headers[name], name);
    const { headers, body } = forwarded;
    assert.equal((await verifyWebhook({ headers, body, secret })).data.sequence, 2);
    assert.ok(new Webhook(secret).verify(body, headers as Record<string, string>));
    await printed(/^\S+ {2}filing\.created +#2 {2}204 {2}\d+ ms$/m);
  });

  await t.test('a failed delivery is printed, and not repeated', async () => {
    receiver.status = 500;
    await fileArtwork(service, platform);
    await printed(/#3 {2}failed: it answered 500 {2}\d+ ms$/m);
    receiver.status = 204;
    await fileArtwork(service, platform);
    await printed(/#4 {2}204 {2}\d+ ms$/m);
    assert.deepEqual(sequencesAt(receiver, '/hooks'), [2, 3, 4]);
  });

  await t.test('it continues after a kill of the server, and says so', async () => {
    await service.stop('SIGKILL');
    await eventually('the report', limitMs, () =>
      /does not respond .*; trying again/.test(listening.stderr()),
    );
    const again = await serve();
    await fileArtwork(again, platform);
    await fileArtwork(again, platform);
    await printed(/#6 {2}204/);
    assert.match(listening.stderr(), /^artseal: connected again; events after 4 follow$/m);
    assert.deepEqual(sequencesAt(receiver, '/hooks'), [2, 3, 4, 5, 6]);
  });

  await t.test('another listener with --after gets earlier events, with the same secret', async () => {
    const earlier = listen('--forward-to', `${receiver.url}/earlier`, '--after', '0');
    await eventually('six events', limitMs, () => /#6 {2}204/.test(earlier.stdout()));
    assert.ok(earlier.stdout().includes(`Signing secret: ${secret}\n`));
    const first = arrived.find(({ path }) => path === '/earlier') ?? assert.fail();
    assert.equal((await verifyWebhook({ ...first, secret })).data.sequence, 1);
    earlier.child.kill('SIGINT');
    assert.equal(await earlier.end(), null);
  });
  assert.ok(listening.child.kill('SIGINT'));
  await once(listening.child, 'exit');
  assert.equal(listening.child.signalCode, 'SIGINT');
});

test('a receiver that does not listen is reported for each event', { timeout: 300_000 }, async (t) => {
  const { service, platform, listen } = await openSandbox(t);
  const listening = listen('--forward-to', `http://${await freeAddress()}/hooks`, '--after', '0');
  await fileArtwork(service, platform);
  await eventually('the failure', limitMs, () =>
    /#1 {2}failed: it refuses connections/.test(listening.stdout()),
  );
});
