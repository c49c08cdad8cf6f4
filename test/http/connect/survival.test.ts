import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2, type OutgoingHttpHeaders } from 'node:http2';
import type { Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { callsPerConnectionMax } from '../../../src/http/connect/connections.ts';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import type { TlsFront } from '../../../src/http/listen/tls-listeners.ts';
import { frontOf, makeAuthority, trust } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { holdsNone } from '../../support/local-server.ts';
import { allReceived, openSocket, sendApart } from '../../support/raw-talk.ts';
import { startService } from '../../support/service.ts';
import { bearer, typedClients } from '../../support/typed-clients.ts';
import { openBareListener } from './bare-listener.ts';
import { frame, framesIn, frameTypes, openWindow, requestHeaders } from './raw-http2.ts';
import { connectOverHttp1 } from './transports.ts';

const service = await startService(fileScope);
const token = await service.token();

/** A new connection, closed after the test. */
async function open(t: TestContext): Promise<Socket> {
  const socket = await openSocket(service.internalUrl);
  t.after(() => socket.destroy());
  return socket;
}

/** Asserts that the server answers a call on new connections of both HTTP versions. */
async function assertAnswersTheNext(): Promise<void> {
  const { internalUrl } = service;
  for (const transport of [connectOverHttp1(internalUrl, token), createTypedTransport(internalUrl, token)]) {
    assert.deepEqual((await typedClients(transport).filings.listFilings({})).filings, []);
  }
}

const path = '/artseal.v1.FilingService/ListFilings';

/** An HTTP/1 request for a list, the last on its connection. */
function listRequest({ version = '1.1', host = ['Host: localhost'], target = path } = {}): string {
  const lines = [
    `POST ${target} HTTP/${version}`,
    ...host,
    'Content-Type: application/json',
    'Content-Length: 2',
    'Connection: close',
    `Authorization: Bearer ${token}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n{}`;
}

const targets = ['*', 'http://[/x', '//', '/%', '/\\', 'http://localhost', `/${'x'.repeat(20_000)}`];

for (const [name, request, status] of [
  ['the Host [', { host: ['Host: ['] }, '[24]'],
  ['an empty Host', { host: ['Host:'] }, '[24]'],
  ['a Host with a path', { host: ['Host: localhost/x'] }, '[24]'],
  ['a Host with a bad port', { host: ['Host: localhost:99999'] }, '[24]'],
  ['two Hosts', { host: ['Host: a', 'Host: b'] }, '[24]'],
  ['no Host', { host: [] }, '[24]'],
  ['no Host in HTTP/1.0', { host: [], version: '1.0' }, '[24]'],
  ...targets.map((target) => [`the target ${target.slice(0, 20)}`, { target }, '4'] as const),
] as const) {
  test(`the server answers an HTTP/1 request with ${name}, and the next call`, async (t) => {
    const socket = await open(t);
    socket.write(listRequest(request as Parameters<typeof listRequest>[0]));
    assert.match(await allReceived(socket), new RegExp(`^HTTP/1\\.[01] ${status}\\d\\d `));
    await assertAnswersTheNext();
  });
}

/** A call over HTTP/2 whose message is not sent yet. */
function beginHttp2Call(t: TestContext, headers: OutgoingHttpHeaders) {
  const session = connectHttp2(service.internalUrl);
  t.after(() => session.destroy());
  const common = { ':method': 'POST', ':path': path, 'content-type': 'application/json', ...bearer(token) };
  return session.request({ ...common, ...headers });
}

for (const [name, headers] of Object.entries({
  'no authority': { ':authority': '' },
  'an invalid authority': { ':authority': '[' },
  'an invalid path': { ':path': '*' },
  'a path with a bad escape': { ':path': '/%' },
  'another method': { ':method': 'DELETE' },
  'the method CONNECT': {
    ':method': 'CONNECT',
    ':path': undefined,
    ':scheme': undefined,
    ':authority': 'a:1',
  },
})) {
  test(`an HTTP/2 request with ${name} ends, and the server answers the next call`, async (t) => {
    const request = beginHttp2Call(t, headers);
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    request.on('error', () => {}).on('close', resolve);
    request.resume().end('{}');
    await ended;
    await assertAnswersTheNext();
  });
}

const garbage: Record<string, readonly (string | Uint8Array)[]> = {
  'zero bytes': [new Uint8Array(64)],
  'bytes of all values': [Uint8Array.from({ length: 256 }, (_, value) => value)],
  'a TLS greeting': [Buffer.from('16030100a5010000a10303', 'hex'), new Uint8Array(160)],
  'a line that is no request': ['HELO example.org\r\n\r\n'],
  'a request without an end, and a header that never ends': ['GET / HTTP/1.1\r\nX: ', 'x'.repeat(100_000)],
  'something that begins like the preface': ['PRIVATE / HTTP/1.1\r\nHost: a\r\n\r\n'],
  'the preface, then zero bytes': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', new Uint8Array(128)],
  'the preface, then a frame that is too long': [
    'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
    Buffer.from('ffffff000000000000', 'hex'),
    new Uint8Array(1_000),
  ],
  'something that begins like the preface, at length': [`PRI * GARBAGE\r\n\r\n${'x'.repeat(200_000)}`],
  'the preface in an unknown version': ['PRI * HTTP/9.9\r\n\r\nSM\r\n\r\n', new Uint8Array(64)],
};

/** A call that waits for 100 Continue before it sends its body. */
const expecting = Buffer.concat([
  openWindow,
  requestHeaders(1, {
    ':method': 'POST',
    ':scheme': 'http',
    ':path': path,
    ':authority': 'x',
    expect: '100-continue',
  }),
]);

for (const [name, end] of Object.entries({
  'resets its stream': frame(frameTypes.rstStream, 0, 1, Buffer.from([0, 0, 0, 8])),
  'breaks the protocol': frame(frameTypes.ping, 0, 1, Buffer.alloc(8)),
  'sends GOAWAY': frame(frameTypes.goAway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1])),
})) {
  test(`a client that expects 100 Continue and ${name} at once does no harm`, async (t) => {
    const socket = await open(t);
    socket.write(Buffer.concat([expecting, end]));
    await assertAnswersTheNext();
  });
}

test('a client that expects 100 Continue gets it', async (t) => {
  const request = beginHttp2Call(t, { expect: '100-continue' });
  await once(request, 'continue');
  request.end('{}');
  const [headers] = await once(request.resume(), 'response');
  assert.equal(headers[':status'], 200);
});

for (const [name, chunks] of Object.entries(garbage)) {
  test(`the server closes a connection that sends ${name}, and answers the next call`, async (t) => {
    const socket = await open(t);
    const ended = allReceived(socket);
    await sendApart(socket, chunks);
    await ended;
    await assertAnswersTheNext();
  });
}

for (const [name, chunks] of Object.entries({
  nothing: [],
  'one byte of the preface': ['P'],
  'two bytes of the preface': ['P', 'R'],
  'the preface and nothing more': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  'half a request': ['POST / HTTP/1.1\r\nHos'],
})) {
  test(`connections that send ${name} and stay, half-close or are reset do not delay others`, async (t) => {
    const [silent, half, reset] = [await open(t), await open(t), await open(t)];
    for (const socket of [silent, half, reset]) await sendApart(socket, chunks);
    const ended = allReceived(half);
    half.end();
    reset.resetAndDestroy();
    await Promise.all([once(half, 'finish'), once(reset, 'close')]);
    await assertAnswersTheNext();
    await ended;
    assert.equal(silent.closed, false);
  });
}

test('a request that arrives byte by byte is answered', async (t) => {
  const socket = await open(t);
  const received = allReceived(socket);
  await sendApart(socket, listRequest().split(''));
  assert.match(await received, /^HTTP\/1\.1 200 /);
});

test('a method that begins like the preface is HTTP/1.1', async (t) => {
  const socket = await open(t);
  const received = allReceived(socket);
  await sendApart(socket, ['P', 'R', listRequest().replace(/^POST/, 'OPFIND')]);
  assert.match(await received, /^HTTP\/1\.1 [45]\d\d /);
});

test('a preface that arrives byte by byte is HTTP/2', async (t) => {
  const socket = await open(t);
  const received = once(socket, 'data');
  await sendApart(
    socket,
    Array.from(openWindow, (byte) => Buffer.of(byte)),
  );
  const [bytes] = await received;
  assert.equal(framesIn(bytes)[0]?.type, frameTypes.settings);
});

/** The listener alone, with responses that are larger than the buffers between it and its clients. */
async function openLargeResponses(
  t: TestContext,
  timeout: { idleMs?: number; stalledMs?: number; tls?: TlsFront | undefined } = {},
) {
  const typedCalls: TypedCalls = (_request, response) => response.end(Buffer.alloc(20_000_000));
  const { server, baseUrl } = await openBareListener(t, typedCalls, timeout);
  return {
    server,
    baseUrl,
    empty: () => holdsNone(server, 60_000),
  };
}

/** GET / over HTTP/2 with the largest flow-control window. */
const http2Request = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])),
  frame(frameTypes.windowUpdate, 0, 0, Buffer.from([0x7f, 0xff, 0, 0])),
  requestHeaders(1, { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'x' }),
]);

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const certificate = authority.issue('listener');
const withTls = () => ({ tls: frontOf(certificate, { protocols: ['h2', 'http/1.1'] }) });

const http1Request = Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
for (const [name, bytes, options] of [
  ['HTTP/1.1', http1Request, () => ({})],
  ['HTTP/1.1 and TLS', http1Request, withTls],
  ['HTTP/2 and TLS', http2Request, withTls],
] as const) {
  const ALPNProtocols = [name.startsWith('HTTP/2') ? 'h2' : 'http/1.1'];

  test(`a connection whose client does not read the response is closed: ${name}`, async (t) => {
    const { baseUrl, empty } = await openLargeResponses(t, { stalledMs: 200, ...options() });
    const socket = await openSocket(baseUrl, { ALPNProtocols });
    t.after(() => socket.destroy());
    socket.pause().write(bytes);
    const [chunk] = await once(socket, 'readable').then(() => [socket.read(1)]);
    assert.ok(chunk !== null, 'the response begins');
    await empty();
  });
}

test('a session without a call is closed', async (t) => {
  const { baseUrl, empty } = await openLargeResponses(t, { idleMs: 200 });
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  // The client answers neither GOAWAY nor the end.
  socket.pause().write(http2Request.subarray(0, 24 + 15));
  await once(socket, 'readable');
  await empty();
});

/** Calls that are each reset right after they begin. */
function resetCalls(first: number, count: number): Buffer {
  const cancel = Buffer.from([0, 0, 0, 8]);
  const calls = Array.from({ length: count }, (_, place) => {
    const stream = 2 * (first + place) + 1;
    const headers = requestHeaders(stream, { ':method': 'POST', ':scheme': 'http', ':path': path });
    return Buffer.concat([headers, frame(frameTypes.rstStream, 0, stream, cancel)]);
  });
  return Buffer.concat(calls);
}

test('a client may reset all calls of a connection, but not any number of calls', async (t) => {
  const reset = async (calls: number) => {
    const socket = await open(t);
    let received = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk]);
    });
    socket.write(Buffer.concat([openWindow, resetCalls(0, calls)]));
    return () => framesIn(received).map(({ type }) => type);
  };
  const { goAway, rstStream } = frameTypes;
  const honest = await reset(callsPerConnectionMax);
  const isOver = () => honest().filter((type) => type === rstStream).length === callsPerConnectionMax;
  await eventually('all calls are over', 60_000, () => isOver() || honest().includes(goAway));
  assert.ok(!honest().includes(goAway));
  const hostile = await reset(3 * callsPerConnectionMax);
  await eventually('the connection takes no more calls', 60_000, () => hostile().includes(goAway));
  await assertAnswersTheNext();
});

test('the connections of a listener have a limit, and a call may wait a minute for its response', async (t) => {
  const { maxConnections, timeout } = (await openLargeResponses(t)).server;
  assert.ok(maxConnections >= 1_000 && maxConnections <= 10_000, `${maxConnections} connections`);
  assert.ok(timeout > 60_000, `${timeout} ms`);
});
