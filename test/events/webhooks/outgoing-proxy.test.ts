import assert from 'node:assert/strict';
import { createServer as createHttpServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttpsServer } from 'node:https';
import { connect, createServer as createTcpServer, type Socket } from 'node:net';
import { type TestContext, test } from 'node:test';
import { createManualClock } from '../../support/clock.ts';
import { freeAddress } from '../../support/free-address.ts';
import {
  certificate,
  finding,
  networksOf,
  openOutgoing,
  outcome,
  post,
  startReceiver,
  startServer,
} from './receiver.ts';

const noConnection = 'the proxy of the server did not connect to it';

/** A forward proxy, and what it was asked for: the target and the credentials. */
async function startProxy(t: TestContext, server: Server = createHttpServer(), status = 200) {
  const asked: (readonly [string | undefined, string | undefined])[] = [];
  server.on('connect', ({ url = '', headers }: IncomingMessage, client: Socket) => {
    asked.push([url, headers['proxy-authorization']]);
    if (status !== 200) return client.end(`HTTP/1.1 ${status} No\r\n\r\n`);
    const { hostname, port } = new URL(`tcp://${url}`);
    const target = connect(Number(port), hostname, () => {
      client.write('HTTP/1.1 200 Connected\r\n\r\n');
      client.pipe(target).pipe(client);
    });
    target.on('error', () => client.destroy());
    return client.on('error', () => target.destroy());
  });
  return { ...(await startServer(t, server)), asked };
}

const lookUp = finding('127.0.0.2');
const networks = networksOf('127.0.0.2');

test('a proxy gets the checked address and its user and password, and TLS goes through it', async (t) => {
  const receiver = await startReceiver(t, undefined, { host: '127.0.0.2' });
  const { port, asked } = await startProxy(t);
  const proxy = new URL(`http://ann:s%3Acret@127.0.0.1:${port}`);
  const outgoing = openOutgoing(t, { lookUp, networks, proxy });
  for (let times = 0; times < 2; times += 1)
    assert.equal(await outcome(post(outgoing, `https://hooks.example:${receiver.port}/`)), 204);
  const credentials = `Basic ${Buffer.from('ann:s:cret').toString('base64')}`;
  assert.deepEqual(asked, [[`127.0.0.2:${receiver.port}`, credentials]], 'the connection is kept');
});

test('a proxy that speaks TLS has to have a valid certificate', async (t) => {
  const receiver = await startReceiver(t, undefined, { host: '127.0.0.2' });
  const { certificate: cert, key } = certificate;
  const { port, asked } = await startProxy(t, createHttpsServer({ cert, key }));
  const proxy = new URL(`https://localhost:${port}`);
  const url = `https://hooks.example:${receiver.port}/`;
  assert.equal(await outcome(post(openOutgoing(t, { lookUp, networks, proxy }), url)), 204);
  assert.deepEqual(asked, [[`127.0.0.2:${receiver.port}`, undefined]]);
  const stranger = openOutgoing(t, { lookUp, networks, proxy, authorities: undefined });
  assert.equal(await outcome(post(stranger, url)), noConnection);
  assert.equal(asked.length, 1);
});

test('a proxy never gets a forbidden address', async (t) => {
  const receiver = await startReceiver(t);
  const { port, asked } = await startProxy(t);
  const proxy = new URL(`http://127.0.0.1:${port}`);
  const url = `https://hooks.example:${receiver.port}/`;
  const outgoing = openOutgoing(t, { lookUp: finding('127.0.0.1'), networks, proxy });
  assert.equal(await outcome(post(outgoing, url)), 'its host has no public address');
  assert.equal(
    await outcome(post(outgoing, `https://127.1:${receiver.port}/`)),
    'its URL must have a host at a public address: 127.0.0.1 is this machine',
  );
  assert.deepEqual([asked.length, receiver.connections()], [0, 0]);
  const allowed = openOutgoing(t, { lookUp: finding('127.0.0.1'), proxy });
  assert.equal(await outcome(post(allowed, url)), 204);
  assert.deepEqual([asked.length, receiver.connections()], [1, 1]);
});

test('of several addresses a proxy gets an IPv4 address if there is one', async (t) => {
  const { port, asked } = await startProxy(t, createHttpServer(), 503);
  const proxy = new URL(`http://127.0.0.1:${port}`);
  for (const addresses of [['2001:4860::1', '10.0.0.1', '8.8.8.8'], ['2001:4860::1']])
    await post(openOutgoing(t, { lookUp: finding(...addresses), proxy }), 'https://hooks.example/');
  assert.deepEqual(
    asked.map(([target]) => target),
    ['8.8.8.8:443', '[2001:4860::1]:443'],
  );
});

test('the platform learns that the proxy failed, and nothing about the proxy', async (t) => {
  const refusing = await startProxy(t, createHttpServer(), 407);
  const junk = await startServer(
    t,
    createTcpServer((socket) => socket.end('junk\r\n\r\n')),
  );
  const proxies: readonly (readonly [string, RegExp])[] = [
    [`http://127.0.0.1:${refusing.port}`, /^it answered 407 to CONNECT 127\.0\.0\.2:443$/],
    [`http://127.0.0.1:${junk.port}`, /^Parse Error/],
    [`http://${await freeAddress()}`, /^connect ECONNREFUSED/],
  ];
  for (const [url, detail] of proxies) {
    const outgoing = openOutgoing(t, { lookUp, networks, proxy: new URL(url) });
    const answer = await post(outgoing, 'https://hooks.example/');
    assert.ok(answer.kind === 'FAILED');
    assert.equal(answer.why, noConnection);
    assert.match(answer.detail ?? '', detail);
  }
});

test('the timeout of 15 seconds includes a silent proxy', async (t) => {
  const clock = createManualClock();
  const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>();
  const { port } = await startServer(
    t,
    createTcpServer((socket) => socket.once('data', () => asked())),
  );
  const proxy = new URL(`http://127.0.0.1:${port}`);
  const answer = outcome(post(openOutgoing(t, { clock, lookUp, networks, proxy }), 'https://hooks.example/'));
  await isAsked;
  clock.advance(15_000);
  assert.equal(await answer, 'it sent no complete response within 15 seconds');
});
