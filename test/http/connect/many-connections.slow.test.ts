import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect as connectPlain } from 'node:net';
import type { Writable } from 'node:stream';
import { type TestContext, test } from 'node:test';
import { setTimeout as delay, setImmediate as nextTurn } from 'node:timers/promises';
import { setCaller } from '../../../src/api/call-observer.ts';
import type { TypedCalls } from '../../../src/http/connect/typed-calls.ts';
import { endWith } from '../../../src/http/listen/http1-server.ts';
import { frontOf, makeAuthority } from '../../support/certificates.ts';
import { openSocket } from '../../support/raw-talk.ts';
import { bearer } from '../../support/typed-clients.ts';
import { type ListenerTimeouts, openBareListener } from './bare-listener.ts';
import { openWindow, requestHeaders } from './raw-http2.ts';

/** The listener alone. Every token is valid. */
async function openListener(t: TestContext, timeouts: ListenerTimeouts): Promise<string> {
  const typedCalls: TypedCalls = (call, response, event) => {
    if (call.headers.authorization !== undefined) setCaller(event, 'ledger');
    const answer: Writable = response;
    if (call.url === '/large') answer.write(Buffer.alloc(1_000_000));
    else setImmediate(() => answer.end('x'));
  };
  return (await openBareListener(t, typedCalls, timeouts)).baseUrl;
}

test('HTTP/2 connections are answered while hundreds of others are reset', async (t) => {
  const baseUrl = await openListener(t, {});
  const assertAnswers = async () => {
    const session = connectHttp2(baseUrl);
    t.after(() => session.destroy());
    const request = session.request({ ':path': '/', ...bearer('it_any') });
    const [headers] = await once(request.resume(), 'response');
    assert.equal(headers[':status'], 200);
  };
  const reset = await Promise.all(Array.from({ length: 300 }, () => openSocket(baseUrl)));
  // The server accepts connections in order: once this call is answered, it has accepted the others.
  await assertAnswers();
  const call = requestHeaders(1, { ':method': 'GET', ':scheme': 'http', ':path': '/', ':authority': 'x' });
  for (const socket of reset) socket.write(Buffer.concat([openWindow, call]));
  await nextTurn();
  await nextTurn();
  for (const socket of reset) socket.resetAndDestroy();
  await Promise.all(Array.from({ length: 200 }, assertAnswers));
});

test('a client that reads slowly gets its whole response', async (t) => {
  const bytes = 12_000_000;
  const typedCalls: TypedCalls = (_, response) => endWith(response as ServerResponse, Buffer.alloc(bytes));
  const { baseUrl } = await openBareListener(t, typedCalls, { stalledMs: 8_000 });
  const socket = await openSocket(baseUrl);
  t.after(() => socket.destroy());
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
  let read = 0;
  for await (const chunk of socket) {
    const before = Math.floor(read / 300_000);
    read += chunk.length;
    if (Math.floor(read / 300_000) > before) await delay(250);
  }
  assert.ok(read > bytes, `${read} bytes`);
});

test('clients that never finish their TLS handshake do not keep others out', async (t) => {
  const authority = makeAuthority(t);
  const tls = frontOf(authority.issue('listener'), { protocols: ['h2', 'http/1.1'] });
  const baseUrl = await openListener(t, { tls });
  const { hostname: host, port } = new URL(baseUrl);
  const open = () => {
    const socket = connectPlain({ host, port: Number(port) });
    return once(socket.on('error', () => {}).resume(), 'connect').then(() => socket);
  };
  // More than the listener accepts at the same time.
  const silent = await Promise.all(Array.from({ length: 1_200 }, open));
  t.after(() => {
    for (const socket of silent) socket.destroy();
  });
  const session = connectHttp2(baseUrl, { ca: authority.certificate });
  t.after(() => session.destroy());
  const [headers] = await once(session.request({ ':path': '/', ...bearer('it_any') }).resume(), 'response');
  assert.equal(headers[':status'], 200);
});
