import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type TestContext, test } from 'node:test';
import { setCaller } from '../../../src/api/call-observer.ts';
import { readBody } from '../../../src/http/rest/http-message.ts';
import type { SignedCalls } from '../../../src/http/rest/routes.ts';
import { loopback } from '../../../src/lib/networks.ts';
import { eventually } from '../../support/eventually.ts';
import { heldConnections } from '../../support/local-server.ts';
import { type BareListener, openBareListener } from './bare-listener.ts';

const timeoutMs = 60_000;

/** Opens a connection that the server may close. */
async function open(baseUrl: string, localAddress?: string): Promise<Socket> {
  const { hostname: host, port } = new URL(baseUrl);
  const socket = connect({ host, port: Number(port), ...(localAddress !== undefined && { localAddress }) });
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

const readThrough: SignedCalls = async (request) => ({
  status: 200,
  headers: {},
  body: String(await readBody(request)),
});

/** Sends incomplete requests over 400 connections, which together exceed the memory limit, until the server closes some. */
async function floodWithHeads(
  t: TestContext,
  { baseUrl, server }: BareListener,
  forwardedFor: (count: number) => string = () => '',
): Promise<void> {
  const headers = Array.from({ length: 95 }, () => 'a:\r\n').join('');
  const sockets: Socket[] = [];
  t.after(() => {
    for (const socket of sockets) socket.destroy();
  });
  for (let count = 0; count < 400; count += 1) {
    const socket = await open(baseUrl);
    sockets.push(socket);
    const head = `POST /any HTTP/1.1\r\nHost: x\r\nContent-Length: 65536\r\n${headers}`;
    socket.resume().write(`${head}X-Forwarded-For: ${forwardedFor(count)}\r\n\r\n`);
  }
  await eventually(
    'the server closes some connections',
    timeoutMs,
    async () => (await heldConnections(server)) < 300,
  );
}

test('unauthenticated callers do not close connections of authenticated ones', async (t) => {
  const answered = Promise.withResolvers<void>();
  const listener = await openBareListener(t, async (request, event) => {
    if (request.url !== '/poll') await readBody(request);
    setCaller(event, 'gallery');
    await answered.promise;
    return { status: 200, headers: {}, body: '{}' };
  });
  const polls = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const poll = once(listener.server, 'request');
      const socket = await open(listener.baseUrl);
      socket.write('GET /poll HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      await poll;
      return socket;
    }),
  );
  await floodWithHeads(t, listener);
  answered.resolve();
  for (const poll of polls) assert.match(await text(poll), /^HTTP\/1\.1 200 /);
});

test('unauthenticated callers do not close connections of another address', async (t) => {
  const listener = await openBareListener(t, readThrough);
  const upload = await open(listener.baseUrl, '127.0.0.2');
  const begun = once(listener.server, 'request');
  upload.write('POST /any HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 10\r\n\r\n12345');
  await begun;
  await floodWithHeads(t, listener);
  upload.write('67890');
  assert.match(await text(upload), /^HTTP\/1\.1 200 /);
});

test('all addresses of an IPv6 network count as one client', async (t) => {
  const listener = await openBareListener(t, readThrough, { proxies: loopback });
  const upload = await open(listener.baseUrl);
  const begun = once(listener.server, 'request');
  const more = `${'a:\r\n'.repeat(90)}b: ${'b'.repeat(5_000)}`;
  const from = 'Connection: close\r\nX-Forwarded-For: 2001:db8:1::1';
  upload.write(`POST /any HTTP/1.1\r\nHost: x\r\n${from}\r\nContent-Length: 65536\r\n${more}\r\n\r\n`);
  await begun;
  await floodWithHeads(t, listener, (count) => `2001:db8:0:${count.toString(16)}::1`);
  upload.write('x'.repeat(65_536));
  assert.match(await text(upload), /^HTTP\/1\.1 200 /);
});
