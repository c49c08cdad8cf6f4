import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request, type ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setCaller } from '../../../src/api/call-observer.ts';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { endWith } from '../../../src/http/listen/http1-server.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { heldConnections } from '../../support/local-server.ts';
import { allReceived, openSocket } from '../../support/raw-talk.ts';
import { startService } from '../../support/service.ts';
import { bearer } from '../../support/typed-clients.ts';
import { type ListenerTimeouts, openBareListener } from './bare-listener.ts';
import { closedWindow, openWindow, ping, pingHead, requestHeaders } from './raw-http2.ts';

/** The listener alone. Every token is valid; the path says how it responds. */
async function openListener(t: TestContext, timeouts: ListenerTimeouts): Promise<string> {
  const typedCalls: TypedCalls = (call, response, event) => {
    if (call.headers.authorization !== undefined) setCaller(event, 'ledger');
    const answer: Writable = response;
    if (call.url === '/open') answer.write('x');
    else if (call.url === '/large') answer.write(Buffer.alloc(1_000_000));
    else setImmediate(() => answer.end('x'));
  };
  const { baseUrl } = await openBareListener(t, typedCalls, timeouts);
  return baseUrl;
}

for (const [name, first, again] of [
  ['pings over HTTP/2', closedWindow, ping],
  ['a header byte by byte', Buffer.from('GET / HTTP/1.1\r\nX: '), Buffer.from('x')],
  ['request after request', Buffer.alloc(0), Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
] as const) {
  test(`a connection without a token is closed even if it sends ${name}`, async (t) => {
    const socket = await openSocket(await openListener(t, { unauthenticatedMs: 200 }));
    socket.write(first);
    const sending = setInterval(() => socket.write(again), 20);
    t.after(() => clearInterval(sending));
    await allReceived(socket);
  });
}

test('a connection with too many calls without a token is closed, even once the first are answered', async (t) => {
  const answerSoon: TypedCalls = (_, response) => process.nextTick(() => response.end());
  const { baseUrl } = await openBareListener(t, answerSoon, { unauthenticatedMs: 600_000, idleMs: 600_000 });
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  socket.resume().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(9));
  await eventually('the connection is ended', 60_000, () => socket.readableEnded || socket.destroyed);
});

test('an HTTP/2 connection without a token gets GOAWAY, one with a token stays', async (t) => {
  const baseUrl = await openListener(t, { unauthenticatedMs: 200 });
  const [named, nameless] = [connectHttp2(baseUrl), connectHttp2(baseUrl)];
  t.after(() => named.destroy());
  await once(named.request({ ':path': '/', ...bearer('it_any') }).resume(), 'close');
  const [code] = await once(nameless, 'goaway');
  assert.equal(code, 0);
  await once(nameless, 'close');
  await once(named.request({ ':path': '/' }).resume(), 'close');
  assert.equal(named.closed, false);
});

/** A session with a token, and the events of the session in order. */
function openSession(t: TestContext, baseUrl: string) {
  const session = connectHttp2(baseUrl);
  t.after(() => session.destroy());
  const events: string[] = [];
  for (const event of ['ping', 'goaway', 'close']) session.on(event, () => events.push(event));
  return { session, events, call: (path: string) => session.request({ ':path': path, ...bearer('it_any') }) };
}

test('an HTTP/2 connection is pinged while a call is open, and closed once no call is', async (t) => {
  const { session, events, call } = openSession(t, await openListener(t, { idleMs: 200 }));
  const open = call('/open').resume();
  await eventually('three pings', 60_000, () => events.length >= 3 || events.includes('goaway'));
  assert.deepEqual(events.slice(0, 3), ['ping', 'ping', 'ping']);
  assert.equal(open.closed, false);
  open.close();
  await once(session, 'close');
});

test('an HTTP/2 connection is closed if its client reads no response, even if it pings', async (t) => {
  const { session, call } = openSession(t, await openListener(t, { stalledMs: 500 }));
  for (const path of ['/large', '/large']) call(path).on('error', () => {});
  const pings = setInterval(() => session.destroyed || session.ping(() => {}), 50);
  t.after(() => clearInterval(pings));
  await once(session, 'close');
});

test('a stream that its client does not read is reset alone if another has nothing to read', async (t) => {
  const { events, call } = openSession(t, await openListener(t, { stalledMs: 500 }));
  const idle = call('/open').on('error', () => {});
  const unread = call('/large').on('error', () => {});
  await eventually('the stream is reset', 60_000, () => unread.closed);
  await once(call('/').resume(), 'close');
  assert.equal(idle.closed, false);
  assert.ok(!events.includes('close'));
});

/** Makes a call on a new connection and reads only the beginning of the response. */
async function callUnread(t: TestContext, baseUrl: string, caller: string, path: string) {
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  socket
    .pause()
    .write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${caller}\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

test('when responses hold too much memory, the caller that reads none loses its largest connections', async (t) => {
  const typedCalls: TypedCalls = ({ headers, url }, response, event) => {
    setCaller(event, headers.authorization ?? '');
    endWith(response as ServerResponse, Buffer.alloc(Number(url?.slice(1))));
  };
  const { server, baseUrl } = await openBareListener(t, typedCalls, { stalledMs: 600_000 });
  const slow = await callUnread(t, baseUrl, 'slow', '/8000000');
  const small = await callUnread(t, baseUrl, 'hostile', '/5000000');
  for (let count = 0; count < 6; count += 1) await callUnread(t, baseUrl, 'hostile', '/7000000');
  await eventually('connections are closed', 60_000, async () => (await heldConnections(server)) <= 3);
  assert.ok((await allReceived(small)).length > 5_000_000);
  let read = 0;
  for await (const chunk of slow) {
    read += chunk.length;
    if (read > 8_000_000) break;
  }
  assert.ok(read > 8_000_000, `${read} bytes`);
});

test('an HTTP/2 connection with an open call is closed if its client does not answer pings', async (t) => {
  const socket = await openSocket(await openListener(t, { idleMs: 200 }));
  const headers = { ':method': 'GET', ':scheme': 'http', ':path': '/open', ':authority': 'x' };
  socket.write(openWindow);
  socket.write(requestHeaders(1, { ...headers, authorization: 'Bearer it_any' }));
  const received = Buffer.from(await allReceived(socket), 'latin1');
  assert.ok(received.includes(pingHead), 'the server sends a ping');
});

const service = await startService(fileScope);
const token = await service.token();
const rounds = 4;

/** Makes a call on an agent's connection, with its body in chunks; returns the status and the header Connection. */
async function callOver(agent: Agent, type: string, body: Buffer) {
  const call = request(`${service.internalUrl}/artseal.v1.FilingService/ListFilings`, {
    ...{ agent, method: 'POST' },
    headers: { 'Content-Type': type, ...bearer(token) },
  });
  for (let at = 0; at < body.length; at += 16_384) call.write(body.subarray(at, at + 16_384));
  call.end();
  const [answer] = await once(call, 'response');
  await answer.resume().toArray();
  return { status: answer.statusCode, connection: answer.headers.connection };
}

for (const [type, prefix] of [
  ['application/proto', Buffer.alloc(0)],
  ['application/grpc-web+proto', Buffer.from([0, 0, 3, 13, 64])],
] as const) {
  test(`the response to a message that is too large closes the connection: ${type}`, async (t) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    t.after(() => agent.destroy());
    const nothing = prefix.length === 0 ? prefix : Buffer.alloc(5);
    for (let round = 0; round < rounds; round += 1) {
      const large = await callOver(agent, type, Buffer.concat([prefix, Buffer.alloc(200_000)]));
      assert.equal(large.connection, 'close');
      assert.deepEqual(await callOver(agent, type, nothing), { status: 200, connection: 'keep-alive' });
    }
  });
}
