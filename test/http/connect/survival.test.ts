import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect as connectHttp2 } from 'node:http2';
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { callsPerConnectionMax } from '../../../src/http/connect/connection.ts';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import type { TlsFront } from '../../../src/http/listen/tls-front.ts';
import { frontOf, makeAuthority, trust } from '../../support/certificates.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { heldConnections } from '../../support/local-server.ts';
import { allReceived, openSocket, sendApart } from '../../support/raw-talk.ts';
import { startService, type TestService } from '../../support/service.ts';
import { bearer, typedClients } from '../../support/typed-clients.ts';
import { openBareDoor } from './bare-listener.ts';
import { frame, frameTypes, openWindow, requestHeaders } from './raw-http2.ts';
import { connectOverHttp1 } from './transports.ts';

interface StartedDoor {
  readonly service: TestService;
  readonly token: string;
  /** A new connection. */
  open(): Promise<Socket>;
  /** Asserts that new connections of both HTTP versions are answered. */
  answersTheNext(): Promise<void>;
}

async function startDoor(t: TestContext): Promise<StartedDoor> {
  const sockets: Socket[] = [];
  // Before the service closes, which would wait for the clients to end theirs.
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  const service = await startService(t);
  const open = async () => {
    const socket = await openSocket(service.internalUrl);
    sockets.push(socket);
    return socket;
  };
  const { internalUrl: baseUrl } = service;
  const token = await service.token();
  const answersTheNext = async () => {
    for (const transport of [connectOverHttp1(baseUrl, token), createTypedTransport(baseUrl, token)]) {
      assert.deepEqual((await typedClients(transport).filings.listFilings({})).filings, []);
    }
  };
  return { service, token, open, answersTheNext };
}

const path = '/artseal.v1.FilingService/ListFilings';

/** A whole HTTP/1 request for a list, after which the connection ends. */
function listRequest(token: string, { version = '1.1', host = ['Host: localhost'] } = {}): string {
  const lines = [
    `POST ${path} HTTP/${version}`,
    ...host,
    'Content-Type: application/json',
    'Content-Length: 2',
    'Connection: close',
    `Authorization: Bearer ${token}`,
  ];
  return `${lines.join('\r\n')}\r\n\r\n{}`;
}

for (const [name, host] of Object.entries({
  'Host that is no host': ['Host: ['],
  'an empty Host': ['Host:'],
  'a Host with a path': ['Host: localhost/x'],
  'a Host with a bad port': ['Host: localhost:99999'],
  'two Hosts': ['Host: a', 'Host: b'],
  'no Host': [],
})) {
  test(`an HTTP/1.1 request with ${name} is answered, and so is the next call`, async (t) => {
    const { token, open, answersTheNext } = await startDoor(t);
    const socket = await open();
    socket.write(listRequest(token, { host }));
    assert.match(await allReceived(socket), /^HTTP\/1\.1 [24]\d\d /);
    await answersTheNext();
  });
}

test('an HTTP/1.0 request without Host is answered, and so is the next call', async (t) => {
  const { token, open, answersTheNext } = await startDoor(t);
  const socket = await open();
  socket.write(listRequest(token, { version: '1.0', host: [] }));
  assert.match(await allReceived(socket), /^HTTP\/1\.[01] [24]\d\d /);
  await answersTheNext();
});

for (const target of ['*', 'http://[/x', '//', '/%', '/\\', 'http://localhost', `/${'x'.repeat(20_000)}`]) {
  test(`the target ${target.slice(0, 20)} is answered, and so is the next call`, async (t) => {
    const { token, open, answersTheNext } = await startDoor(t);
    const socket = await open();
    socket.write(listRequest(token).replace(path, target));
    assert.match(await allReceived(socket), /^HTTP\/1\.1 4\d\d /);
    await answersTheNext();
  });
}

for (const [name, headers] of Object.entries({
  'no authority': { ':authority': '' },
  'an authority that is none': { ':authority': '[' },
  'a path that is none': { ':path': '*' },
  'a path with a bad escape': { ':path': '/%' },
  'another method': { ':method': 'DELETE' },
  'the method CONNECT': {
    ':method': 'CONNECT',
    ':path': undefined,
    ':scheme': undefined,
    ':authority': 'a:1',
  },
})) {
  test(`an HTTP/2 request with ${name} ends, and the next call is answered`, async (t) => {
    const { service, token, answersTheNext } = await startDoor(t);
    const session = connectHttp2(service.internalUrl);
    t.after(() => session.destroy());
    const request = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/json',
      ...bearer(token),
      ...headers,
    });
    const { promise: ended, resolve } = Promise.withResolvers<void>();
    request.on('error', () => {}).on('close', resolve);
    request.resume().end('{}');
    await ended;
    await answersTheNext();
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
  'the preface in the version of nobody': ['PRI * HTTP/9.9\r\n\r\nSM\r\n\r\n', new Uint8Array(64)],
};

/** A call that waits for leave to send its body. */
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
  'takes it back': frame(frameTypes.rstStream, 0, 1, Buffer.from([0, 0, 0, 8])),
  'breaks the protocol': frame(frameTypes.ping, 0, 1, Buffer.alloc(8)),
  'says goodbye': frame(frameTypes.goAway, 0, 0, Buffer.from([0, 0, 0, 0, 0, 0, 0, 1])),
})) {
  test(`a client that expects leave to go on and ${name} at once does no harm`, async (t) => {
    const { open, answersTheNext } = await startDoor(t);
    const socket = await open();
    socket.write(Buffer.concat([expecting, end]));
    await answersTheNext();
  });
}

test('a client that expects leave to go on gets it', async (t) => {
  const { service, token } = await startDoor(t);
  const session = connectHttp2(service.internalUrl);
  t.after(() => session.destroy());
  const headers = { ':method': 'POST', ':path': path, 'content-type': 'application/json' };
  const request = session.request({ ...headers, expect: '100-continue', ...bearer(token) });
  await once(request, 'continue');
  request.end('{}');
  const [answer] = await once(request.resume(), 'response');
  assert.equal(answer[':status'], 200);
});

for (const [name, chunks] of Object.entries(garbage)) {
  test(`${name}: the connection is ended and the next call answered`, async (t) => {
    const { open, answersTheNext } = await startDoor(t);
    const socket = await open();
    const ended = allReceived(socket);
    await sendApart(socket, chunks);
    await ended;
    await answersTheNext();
  });
}

for (const [name, chunks] of Object.entries({
  nothing: [],
  'one byte of the preface': ['P'],
  'two bytes of the preface': ['P', 'R'],
  'the preface and nothing more': ['PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
  'half a request': ['POST / HTTP/1.1\r\nHos'],
})) {
  test(`a connection that sends ${name} and falls silent keeps nobody else waiting`, async (t) => {
    const { open, answersTheNext } = await startDoor(t);
    const socket = await open();
    await sendApart(socket, chunks);
    await answersTheNext();
    assert.equal(socket.closed, false);
  });

  test(`a connection that sends ${name} and half-closes does no harm`, async (t) => {
    const { open, answersTheNext } = await startDoor(t);
    const socket = await open();
    await sendApart(socket, chunks);
    socket.end();
    await once(socket, 'finish');
    await answersTheNext();
  });

  test(`a connection that sends ${name} and is reset does no harm`, async (t) => {
    const { open, answersTheNext } = await startDoor(t);
    const socket = await open();
    await sendApart(socket, chunks);
    socket.resetAndDestroy();
    await once(socket, 'close');
    await answersTheNext();
  });
}

for (const [name, chunks] of Object.entries({
  nothing: [],
  'a part of the preface': ['PR'],
  'half a request': ['POST / HTTP/1.1\r\nHos'],
})) {
  test(`a connection that half-closes after ${name} is closed`, async (t) => {
    const { open } = await startDoor(t);
    const socket = await open();
    const ended = allReceived(socket);
    await sendApart(socket, chunks);
    socket.end();
    await ended;
  });
}

test('a request that is followed by a half-close is answered', async (t) => {
  const { token, open } = await startDoor(t);
  const socket = await open();
  socket.end(listRequest(token));
  assert.match(await allReceived(socket), /^HTTP\/1\.1 200 /);
});

test('a request that comes byte by byte is answered', async (t) => {
  const { token, open } = await startDoor(t);
  const socket = await open();
  const received = allReceived(socket);
  await sendApart(socket, listRequest(token).split(''));
  assert.match(await received, /^HTTP\/1\.1 200 /);
});

test('a method that begins as the preface does is HTTP/1.1', async (t) => {
  const { token, open } = await startDoor(t);
  const socket = await open();
  const received = allReceived(socket);
  await sendApart(socket, ['P', 'R', listRequest(token).replace(/^POST/, 'OPFIND')]);
  assert.match(await received, /^HTTP\/1\.1 [45]\d\d /);
});

/** A socket as a stream that sends each byte of the first packets in a packet of its own. */
function inSmallPieces(socket: Socket, bytesApart: number): Duplex {
  let left = bytesApart;
  const stream = new Duplex({
    read: () => socket.resume(),
    write: (chunk: Buffer, _encoding, done) => {
      const apart = chunk.subarray(0, left);
      left -= apart.length;
      const pieces = [...apart].map((byte) => Buffer.from([byte]));
      sendApart(socket, [...pieces, chunk.subarray(apart.length)]).then(() => done(), done);
    },
    final: (done) => socket.end(done),
  });
  socket.on('data', (chunk) => {
    if (!stream.push(chunk)) socket.pause();
  });
  socket.on('end', () => stream.push(null));
  return stream;
}

test('a preface that comes byte by byte is HTTP/2', async (t) => {
  const { service, token, open } = await startDoor(t);
  const socket = await open();
  const session = connectHttp2(service.internalUrl, { createConnection: () => inSmallPieces(socket, 60) });
  t.after(() => session.destroy());
  const request = session.request({
    ':method': 'POST',
    ':path': path,
    'content-type': 'application/json',
    ...bearer(token),
  });
  request.end('{}');
  const [headers] = await once(request, 'response');
  assert.equal(headers[':status'], 200);
  assert.equal(await text(request), '{}');
});

test('a client that goes away in the middle of a call does no harm', async (t) => {
  const { service, token, open, answersTheNext } = await startDoor(t);
  const socket = await open();
  await sendApart(socket, [listRequest(token).slice(0, -1)]);
  socket.resetAndDestroy();
  const session = connectHttp2(service.internalUrl);
  await once(session, 'connect');
  session.on('error', () => {});
  const request = session.request({ ':method': 'POST', ':path': path, ...bearer(token) });
  request.on('error', () => {}).write('{');
  session.destroy();
  await answersTheNext();
});

test('a hundred connections that say nothing keep nobody waiting', async (t) => {
  const { open, answersTheNext } = await startDoor(t);
  await Promise.all(Array.from({ length: 100 }, open));
  await answersTheNext();
});

/** The longest wait for something that has to happen. */
const timeoutMs = 60_000;

/** The internal door alone, with answers that are larger than the buffers between it and its clients. */
async function openLargeDoor(
  t: TestContext,
  timeout: { idleMs?: number; stalledMs?: number; tls?: TlsFront | undefined } = {},
) {
  const typedCalls: TypedCalls = (_request, response) => response.end(Buffer.alloc(20_000_000));
  const { server, baseUrl } = await openBareDoor(t, typedCalls, timeout);
  return {
    server,
    baseUrl,
    /** Resolves once no more than so many connections are held. */
    holds: (count: number) =>
      eventually(
        `${count} connections are held`,
        timeoutMs,
        async () => (await heldConnections(server)) <= count,
      ),
  };
}

/** GET / over HTTP/2, with all of the flow-control window open. */
const http2Request = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(frameTypes.settings, 0, 0, Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff])),
  frame(frameTypes.windowUpdate, 0, 0, Buffer.from([0x7f, 0xff, 0, 0])),
  requestHeaders(1, { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'x' }),
]);

const authority = makeAuthority(fileScope);
trust(fileScope, authority);
const certificate = authority.issue('door');
const withTls = () => ({ tls: frontOf(certificate, { protocols: ['h2', 'http/1.1'] }) });

for (const [name, bytes, options] of [
  ['HTTP/1.1', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), () => ({})],
  ['HTTP/2', http2Request, () => ({})],
  ['HTTP/1.1 and TLS', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), withTls],
  ['HTTP/2 and TLS', http2Request, withTls],
] as const) {
  const ALPNProtocols = [name.startsWith('HTTP/2') ? 'h2' : 'http/1.1'];

  test(`a connection whose answer is not read is closed: ${name}`, async (t) => {
    const door = await openLargeDoor(t, { stalledMs: 1_000, ...options() });
    const socket = await openSocket(door.baseUrl, { ALPNProtocols });
    t.after(() => socket.destroy());
    socket.pause().write(bytes);
    const [chunk] = await once(socket, 'readable').then(() => [socket.read(1)]);
    assert.ok(chunk !== null, 'the answer begins');
    await door.holds(0);
  });
}

test('a session whose flow-control window stays closed is closed', async (t) => {
  const door = await openLargeDoor(t, { stalledMs: 1_000 });
  const session = connectHttp2(door.baseUrl, { settings: { initialWindowSize: 0 } });
  t.after(() => session.destroy());
  session.on('error', () => {});
  const request = session.request({ ':path': '/' }).on('error', () => {});
  await once(request, 'response');
  await door.holds(0);
});

test('a session on which nothing is asked is closed', async (t) => {
  const door = await openLargeDoor(t, { idleMs: 1_000 });
  const socket = await openSocket(door.baseUrl);
  t.after(() => socket.destroy());
  // Neither the GOAWAY nor the end is answered.
  socket.pause().write(http2Request.subarray(0, 24 + 15));
  await once(socket, 'readable');
  await door.holds(0);
});

/** Calls that are begun and reset at once, one after the other. */
function resetCalls(first: number, count: number): Buffer {
  const cancel = Buffer.from([0, 0, 0, 8]);
  const calls = Array.from({ length: count }, (_, place) => {
    const stream = 2 * (first + place) + 1;
    const headers = requestHeaders(stream, { ':method': 'POST', ':scheme': 'http', ':path': path });
    return Buffer.concat([headers, frame(frameTypes.rstStream, 0, stream, cancel)]);
  });
  return Buffer.concat(calls);
}

/** The types of the frames in a piece of an answer that begins with one. */
function typesIn(bytes: Buffer): number[] {
  if (bytes.length < 9) return [];
  return [bytes.readUInt8(3), ...typesIn(bytes.subarray(9 + bytes.readUIntBE(0, 3)))];
}

test('a peer may reset all calls of a connection, and not call after call without end', async (t) => {
  const { open, answersTheNext } = await startDoor(t);
  const reset = async (calls: number) => {
    const socket = await open();
    const received: number[] = [];
    socket.on('data', (chunk: Buffer) => received.push(...typesIn(chunk)));
    socket.write(Buffer.concat([openWindow, resetCalls(0, calls)]));
    return received;
  };
  const { goAway, rstStream } = frameTypes;
  const honest = await reset(callsPerConnectionMax);
  const isOver = () => honest.filter((type) => type === rstStream).length === callsPerConnectionMax;
  await eventually('all calls are over', 60_000, () => isOver() || honest.includes(goAway));
  assert.ok(!honest.includes(goAway));
  const hostile = await reset(3 * callsPerConnectionMax);
  await eventually('the connection takes no more calls', 60_000, () => hostile.includes(goAway));
  await answersTheNext();
});

test('connections beyond those that the service can hold are closed, and taken again later', async (t) => {
  const door = await openLargeDoor(t);
  const { maxConnections, timeout } = door.server;
  assert.ok(maxConnections >= 1_000 && maxConnections <= 10_000, `${maxConnections} connections`);
  assert.ok(timeout > 60_000, 'a call may wait a minute for its answer');
  door.server.maxConnections = 2;
  const sockets = await Promise.all([openSocket(door.baseUrl), openSocket(door.baseUrl)]);
  t.after(() => sockets.map((socket) => socket.destroy()));
  assert.equal(await allReceived(await openSocket(door.baseUrl)), '');
  sockets[0].destroy();
  await door.holds(1);
  const next = await openSocket(door.baseUrl);
  t.after(() => next.destroy());
  next.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
  const [head] = await once(next, 'data');
  assert.match(head.toString('latin1'), /^HTTP\/1\.1 200 /);
});
