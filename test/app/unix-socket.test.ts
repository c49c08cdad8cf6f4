import assert from 'node:assert/strict';
import { once } from 'node:events';
import { existsSync, lstatSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
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
import { closesByItself } from '../http/connect/closing-support.ts';
import { fileScope } from '../support/file-scope.ts';
import { artwork } from '../support/samples.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { bearer, sending, typedClients, typedError } from '../support/typed-clients.ts';

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
  test(`an internal system calls over a Unix socket: ${name}`, async () => {
    const { filings } = typedClients(transport);
    const { filingNo } = await filings.createFiling({ ...artwork, price: 1n });
    assert.equal((await filings.getFiling({ filingNo })).filing?.filingNo, filingNo);
    const { client, caller } = JSON.parse(String(service.logLines.at(-1)));
    assert.equal(client, 'unix');
    assert.match(caller, /^service-/);
  });
}

test('the Unix socket requires a token', async () => {
  const { filings } = typedClients(createTypedTransport(service.internalUrl, 'it_any'));
  await typedError(filings.listFilings({}), 'AUTH_HEADER_INVALID');
});

test('only the user and the group of the process may connect', () => {
  assert.equal(service.internalUrl, `unix:${path}`);
  assert.equal(service.internalAddress, `unix:${path}`);
  const { mode } = statSync(path);
  assert.equal((mode & 0o777).toString(8), '660');
});

test('idle connections do not delay closing, and closing removes the socket', async (t) => {
  const place = socketIn(t);
  const own = await startService(t, { env: at(place) });
  const { filings } = await own.clients();
  await filings.listFilings({});
  assert.ok(await closesByItself(t, own));
  assert.equal(existsSync(place), false);
});

test('the socket of a process that was killed is replaced', async (t) => {
  const [place, other] = [socketIn(t), socketIn(t)];
  const killed = createServer().listen({ path: other });
  await once(killed, 'listening');
  // Closing removes the socket by its first name alone, so it stays, and nobody listens on it.
  renameSync(other, place);
  killed.close();
  await once(killed, 'close');
  assert.ok(lstatSync(place).isSocket());
  const own = await startService(t, { env: at(place) });
  const { filings } = await own.clients();
  await filings.listFilings({});
});

for (const [what, make] of Object.entries({
  'a file': (place: string) => writeFileSync(place, 'kept'),
  'a folder': (place: string) => mkdirSync(place),
})) {
  test(`${what} at the path of the socket is not replaced`, async (t) => {
    const place = socketIn(t);
    make(place);
    const before = lstatSync(place).ino;
    await assert.rejects(startService(t, { env: at(place) }), /no socket; set ARTSEAL_INTERNAL_ADDR/);
    assert.equal(lstatSync(place).ino, before);
    if (what === 'a file') assert.equal(readFileSync(place, 'utf8'), 'kept');
  });
}

test('a socket on which another program listens is not replaced', async (t) => {
  const place = socketIn(t);
  const other = createServer().listen({ path: place });
  t.after(() => other.close());
  await once(other, 'listening');
  await assert.rejects(
    startService(t, { env: at(place) }),
    /unix:.*another process listens on it; set ARTSEAL_INTERNAL_ADDR/,
  );
  assert.ok(lstatSync(place).isSocket());
});

test('a missing folder is named', async (t) => {
  const place = join(temporaryFolder(t), 'none', 'internal.sock');
  await assert.rejects(startService(t, { env: at(place) }), /cannot serve on unix:.*(ENOENT|EACCES)/);
});

test('opening the socket does not change the umask', async (t) => {
  const before = process.umask();
  await startService(t, { env: at(socketIn(t)) });
  assert.equal(process.umask(), before);
});
