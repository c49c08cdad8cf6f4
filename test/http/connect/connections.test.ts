import assert from 'node:assert/strict';
import { once } from 'node:events';
import { Agent, request, type ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import type { Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { Code } from '@connectrpc/connect';
import { setCaller } from '../../../src/api/request-event.ts';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { endWith } from '../../../src/http/listen/counted-response.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { heldConnections } from '../../support/local-server.ts';
import { allReceived, openSocket } from '../../support/raw-talk.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { bearer, errorOf, typedClients } from '../../support/typed-clients.ts';
import { type ListenerTimeouts, openBareListener } from './bare-listener.ts';
import { closedWindow, openWindow, ping, pingHead, requestHeaders } from './raw-http2.ts';
import { transports } from './transports.ts';

/** The listener alone, which lets whoever shows a token in, and answers everybody: at once, or as the path says. */
async function openDoor(t: TestContext, timeout: ListenerTimeouts): Promise<string> {
  const typedCalls: TypedCalls = (asked, response, trace) => {
    if (asked.headers.authorization !== undefined) setCaller(trace, 'ledger');
    const answer: Writable = response;
    if (asked.url === '/open') answer.write('x');
    else if (asked.url === '/large') answer.write(Buffer.alloc(1_000_000));
    else setImmediate(() => answer.end('x'));
  };
  const { baseUrl } = await openBareListener(t, typedCalls, timeout);
  return baseUrl;
}

for (const [name, first, again] of [
  ['pings over HTTP/2', closedWindow, ping],
  ['a header byte by byte', Buffer.from('GET / HTTP/1.1\r\nX: '), Buffer.from('x')],
  ['request after request', Buffer.alloc(0), Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n')],
] as const) {
  test(`a connection without a token is ended, though it sends ${name}`, async (t) => {
    const socket = await openSocket(await openDoor(t, { unauthenticatedMs: 200 }));
    socket.write(first);
    const sending = setInterval(() => socket.write(again), 20);
    t.after(() => clearInterval(sending));
    await allReceived(socket);
  });
}

test('calls that wait behind those without a token end their connection, though these are answered by then', async (t) => {
  const answerSoon: TypedCalls = (_, response) => process.nextTick(() => response.end());
  const { baseUrl } = await openBareListener(t, answerSoon, { unauthenticatedMs: 600_000, idleMs: 600_000 });
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  socket.resume().write('GET / HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(9));
  await eventually('the connection is ended', 60_000, () => socket.readableEnded || socket.destroyed);
});

test('an HTTP/2 connection without a token is told to go, one with a token stays', async (t) => {
  const baseUrl = await openDoor(t, { unauthenticatedMs: 200 });
  const [named, nameless] = [connectHttp2(baseUrl), connectHttp2(baseUrl)];
  t.after(() => named.destroy());
  await once(named.request({ ':path': '/', ...bearer('it_any') }).resume(), 'close');
  const [code] = await once(nameless, 'goaway');
  assert.equal(code, 0);
  await once(nameless, 'close');
  await once(named.request({ ':path': '/' }).resume(), 'close');
  assert.equal(named.closed, false);
});

test('HTTP/2 connections that come at once are answered, though others are reset meanwhile', async (t) => {
  const baseUrl = await openDoor(t, {});
  const assertAnswers = async () => {
    const session = connectHttp2(baseUrl);
    t.after(() => session.destroy());
    const request = session.request({ ':path': '/', ...bearer('it_any') });
    const [headers] = await once(request.resume(), 'response');
    assert.equal(headers[':status'], 200);
  };
  const reset = await Promise.all(Array.from({ length: 300 }, () => openSocket(baseUrl)));
  // Whoever is answered was accepted behind these.
  await assertAnswers();
  const call = requestHeaders(1, { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'x' });
  for (const socket of reset) socket.write(Buffer.concat([openWindow, call]));
  await nextTurn();
  await nextTurn();
  for (const socket of reset) socket.resetAndDestroy();
  await Promise.all(Array.from({ length: 200 }, assertAnswers));
});

/** A session with a token, and what it is told by the service, in order. */
function sessionTold(t: TestContext, baseUrl: string) {
  const session = connectHttp2(baseUrl);
  t.after(() => session.destroy());
  const told: string[] = [];
  for (const event of ['ping', 'goaway', 'close']) session.on(event, () => told.push(event));
  return { session, told, ask: (path: string) => session.request({ ':path': path, ...bearer('it_any') }) };
}

test('an HTTP/2 connection with an open call lasts while nothing moves, and ends when it has none', async (t) => {
  const { session, told, ask } = sessionTold(t, await openDoor(t, { idleMs: 200 }));
  const call = ask('/open').resume();
  await eventually('it is asked thrice', 60_000, () => told.length >= 3 || told.includes('goaway'));
  assert.deepEqual(told.slice(0, 3), ['ping', 'ping', 'ping']);
  assert.equal(call.closed, false);
  call.close();
  await once(session, 'close');
});

test('an HTTP/2 connection ends if its peer takes none of its answers, though it pings', async (t) => {
  const { session, ask } = sessionTold(t, await openDoor(t, { stalledMs: 500 }));
  for (const path of ['/large', '/large']) ask(path).on('error', () => {});
  const pings = setInterval(() => session.destroyed || session.ping(() => {}), 50);
  t.after(() => clearInterval(pings));
  await once(session, 'close');
});

test('of an HTTP/2 connection only the stream is reset that its peer does not read, if another has nothing to read', async (t) => {
  const { told, ask } = sessionTold(t, await openDoor(t, { stalledMs: 500 }));
  const idle = ask('/open').on('error', () => {});
  const unread = ask('/large').on('error', () => {});
  await eventually('the stream is reset', 60_000, () => unread.closed);
  await once(ask('/').resume(), 'close');
  assert.equal(idle.closed, false);
  assert.ok(!told.includes('close'));
});

test('of an HTTP/2 connection only the stream is reset that its peer does not read, if it reads others', async (t) => {
  const { told, ask } = sessionTold(t, await openDoor(t, { stalledMs: 1_000 }));
  const unread = ask('/large').on('error', () => {});
  while (!unread.closed) await once(ask('/').resume(), 'close');
  await once(ask('/').resume(), 'close');
  assert.ok(!told.includes('close'));
});

/** Asks for an answer over a connection of its own, of which no more is read than the beginning. */
async function askUnread(t: TestContext, baseUrl: string, caller: string, path: string) {
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  socket
    .pause()
    .write(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${caller}\r\n\r\n`);
  await once(socket, 'readable');
  return socket;
}

test('a caller who does not read loses the largest connections when too much is held, and others lose none', async (t) => {
  const typedCalls: TypedCalls = ({ headers, url }, response, event) => {
    setCaller(event, headers.authorization ?? '');
    endWith(response as ServerResponse, Buffer.alloc(Number(url?.slice(1))));
  };
  const { server, baseUrl } = await openBareListener(t, typedCalls, { stalledMs: 600_000 });
  const slow = await askUnread(t, baseUrl, 'slow', '/8000000');
  const small = await askUnread(t, baseUrl, 'hostile', '/5000000');
  for (let count = 0; count < 6; count += 1) await askUnread(t, baseUrl, 'hostile', '/7000000');
  await eventually('connections are closed', 60_000, async () => (await heldConnections(server)) <= 3);
  assert.ok((await allReceived(small)).length > 5_000_000);
  let read = 0;
  for await (const chunk of slow) {
    read += chunk.length;
    if (read > 8_000_000) break;
  }
  assert.ok(read > 8_000_000, `${read} bytes`);
});

test('a client that reads slowly reads its answer to the end', async (t) => {
  const bytes = 12_000_000;
  const typedCalls: TypedCalls = (_, response) => endWith(response as ServerResponse, Buffer.alloc(bytes));
  const { baseUrl } = await openBareListener(t, typedCalls, { stalledMs: 1_500 });
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  let read = 0;
  for await (const chunk of socket) {
    const before = Math.floor(read / 300_000);
    read += chunk.length;
    if (Math.floor(read / 300_000) > before) await delay(60);
  }
  assert.ok(read > bytes, `${read} bytes`);
});

test('an HTTP/2 connection with an open call ends if its peer is gone', async (t) => {
  const socket = await openSocket(await openDoor(t, { idleMs: 200 }));
  const headers = { ':method': 'GET', ':scheme': 'http', ':path': '/open', ':authority': 'x' };
  socket.write(openWindow);
  socket.write(requestHeaders(1, { ...headers, authorization: 'Bearer it_any' }));
  const received = Buffer.from(await allReceived(socket), 'latin1');
  assert.ok(received.includes(pingHead), 'it is asked whether it is there');
});

const service = await startService(fileScope);
const token = await service.token();
const rounds = 16;

for (const name of ['gRPC-Web over HTTP/1.1', 'Connect over HTTP/1.1', 'Connect with JSON over HTTP/1.1']) {
  test(`the call after one that is too large is answered, ${rounds} times: ${name}`, async () => {
    const transport = transports[name];
    assert.ok(transport !== undefined);
    const { filings } = typedClients(transport(service.internalUrl, token));
    for (let round = 0; round < rounds; round += 1) {
      const large = { ...artwork, price: 1n, condition: 'x'.repeat(200_000) };
      assert.equal((await errorOf(filings.createFiling(large))).code, Code.ResourceExhausted);
      assert.deepEqual((await filings.listFilings({})).filings, []);
    }
  });
}

/** Makes a call over an agent's connections, with its body in chunks; the status and the header Connection. */
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
  test(`a kept connection is ended by the answer to what is too large: ${type}`, async (t) => {
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
