import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import type { Transport } from '@connectrpc/connect';
import {
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from '@connectrpc/connect-node';
import { createTypedTransport } from '../../src/client/typed.ts';
import { closingOf } from '../http/connect/closing-support.ts';
import { fileScope } from '../support/file-scope.ts';
import { issueInto } from '../support/issued.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { bearer, sending, typedClients, typedRefusal } from '../support/typed-clients.ts';
import { assertOneLine, runBounded, runShell, serveWatched } from '../support/watched-command.ts';

const at = (path: string) => ({ ARTSEAL_INTERNAL_ADDR: `unix:${path}` });
const socketIn = (t: Pick<TestContext, 'after'>) => join(temporaryFolder(t), 'internal.sock');

const path = socketIn(fileScope);
const service = await startService(fileScope, { env: at(path) });
const token = await service.token();

const nodeOptions = { createConnection: () => connect({ path }) };
const baseUrl = 'http://localhost';
const interceptors = [sending(bearer(token))];
const transports: Record<string, Transport> = {
  'the client that comes with the service': createTypedTransport(service.internalUrl, token),
  'Connect over HTTP/1.1': createConnectTransport({
    ...{ baseUrl, interceptors, httpVersion: '1.1', nodeOptions: { socketPath: path } },
  }),
  'gRPC over HTTP/2': createGrpcTransport({ baseUrl, interceptors, nodeOptions }),
  'gRPC-Web over HTTP/2': createGrpcWebTransport({ baseUrl, interceptors, httpVersion: '2', nodeOptions }),
};

for (const [name, transport] of Object.entries(transports)) {
  test(`an internal system is served over a Unix socket: ${name}`, async () => {
    const { filings } = typedClients(transport);
    const { filingNo } = await filings.createFiling({ ...artwork, price: 1n });
    assert.equal((await filings.getFiling({ filingNo })).filing?.filingNo, filingNo);
    const { client, caller } = JSON.parse(String(service.logLines.at(-1)));
    assert.equal(client, 'unix');
    assert.match(caller, /^service-/);
  });
}

test('a token is needed there, too', async () => {
  const { filings } = typedClients(createTypedTransport(service.internalUrl, 'it_any'));
  await typedRefusal(filings.listFilings({}), 'AUTH_HEADER_INVALID');
});

test('its user and group may connect, and nobody else', () => {
  assert.equal(service.internalUrl, `unix:${path}`);
  assert.equal(service.internalAddress, `unix:${path}`);
  const { mode } = statSync(path);
  assert.equal((mode & 0o777).toString(8), '660');
});

test('connections that are idle do not hold up closing, and the socket is removed', async (t) => {
  const place = socketIn(t);
  const own = await startService(t, { env: at(place) });
  const { filings } = typedClients(createTypedTransport(own.internalUrl, await own.token()));
  await filings.listFilings({});
  assert.equal(await closingOf(t, own), 'by itself');
  assert.equal(existsSync(place), false);
});

test('curl calls it', async (t) => {
  const { code, stdout, stderr } = await runShell(
    t,
    `curl -sS --unix-socket "$SOCKET" -H "Authorization: Bearer $TOKEN" --json '{}' \\
       http://localhost/artseal.v1.FilingService/ListFilings
     curl -sS --unix-socket "$SOCKET" --http2-prior-knowledge --json '{}' -o /dev/null -w '\\n%{http_code} %{http_version}\\n' \\
       http://localhost/artseal.v1.FilingService/ListFilings`,
    { SOCKET: path, TOKEN: token },
  );
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^\{"filings":\[.*\}\n401 2\n$/s);
});

test('the socket of a process that was killed is replaced; the commands and messages name it', async (t) => {
  const folder = temporaryFolder(t);
  const place = join(folder, 'internal.sock');
  const { token: own } = await issueInto(folder, 1);
  const env = { ARTSEAL_DATA_DIR: folder, ...at(place) };
  const killed = await serveWatched(t, env);
  assert.equal(killed.internalUrl, `unix:${place}`);
  await killed.stop('SIGKILL');
  assert.ok(lstatSync(place).isSocket());
  const serving = await serveWatched(t, env);
  const { filings } = typedClients(createTypedTransport(serving.internalUrl, own));
  await filings.listFilings({});

  const other = { ...env, ARTSEAL_DATA_DIR: join(folder, 'other') };
  assertOneLine(
    await runBounded(t, ['serve'], other),
    1,
    /unix:.*another process listens.*ARTSEAL_INTERNAL_ADDR/,
  );
  await filings.listFilings({});
  assert.equal(await serving.stop(), 0);
  assert.equal(existsSync(place), false);
});

for (const [what, make] of Object.entries({
  'a file': (place: string) => writeFileSync(place, 'kept'),
  'a folder': (place: string) => mkdirSync(place),
})) {
  test(`${what} in its place is left alone`, async (t) => {
    const place = socketIn(t);
    make(place);
    const before = lstatSync(place).ino;
    await assert.rejects(startService(t, { env: at(place) }), /no socket; set ARTSEAL_INTERNAL_ADDR/);
    assert.equal(lstatSync(place).ino, before);
    if (what === 'a file') assert.equal(readFileSync(place, 'utf8'), 'kept');
  });
}

test('a socket on which another program listens is left alone', async (t) => {
  const place = socketIn(t);
  const other = createServer().listen({ path: place });
  t.after(() => other.close());
  await once(other, 'listening');
  await assert.rejects(startService(t, { env: at(place) }), /another process listens on it/);
  assert.ok(lstatSync(place).isSocket());
});

test('a folder that is not there is named', async (t) => {
  const place = join(temporaryFolder(t), 'none', 'internal.sock');
  await assert.rejects(startService(t, { env: at(place) }), /cannot serve on unix:.*(ENOENT|EACCES)/);
});

test('the umask of the process is as it was', async (t) => {
  const before = process.umask();
  await startService(t, { env: at(socketIn(t)) });
  assert.equal(process.umask(), before);
});
