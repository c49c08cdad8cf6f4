import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createClientOf, givenNetwork, parseNetwork } from '../../src/lib/networks.ts';
import { fileScope } from '../support/file-scope.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

type Place = Readonly<{ host: string; port: number } | { path: string }>;

/** The server's end of a connection to it. */
async function accepted(t: Pick<TestContext, 'after'>, place: Place, peer = place): Promise<Socket> {
  const server = createServer().listen(place);
  await once(server, 'listening');
  const bound = server.address();
  const port = typeof bound === 'object' && bound !== null ? { port: bound.port } : {};
  const connecting = connect({ ...peer, ...port });
  const [socket] = (await once(server, 'connection')) as [Socket];
  t.after(() => {
    connecting.destroy();
    socket.destroy();
    server.close();
  });
  return socket;
}

const networks = (...texts: string[]) =>
  texts.map((text) => parseNetwork(text) ?? assert.fail(`${text} is not a network`));

const local = await accepted(fileScope, { host: '127.0.0.1', port: 0 });
const dualStack = await accepted(fileScope, { host: '::', port: 0 }, { host: '127.0.0.1', port: 0 });

test('the client is the peer, with its IPv4 address on a dual-stack socket', () => {
  const clientOf = createClientOf([]);
  for (const socket of [local, dualStack]) {
    assert.equal(clientOf(socket, {}), '127.0.0.1');
    assert.equal(clientOf(socket, { 'x-forwarded-for': '192.0.2.1' }), '127.0.0.1');
  }
});

test('the client of a Unix socket is `unix`, whatever the headers say', async (t) => {
  const socket = await accepted(t, { path: join(temporaryFolder(t), 'socket') });
  const clientOf = createClientOf(networks('0.0.0.0/0', '::/0'));
  assert.equal(clientOf(socket, { 'x-forwarded-for': '192.0.2.1' }), 'unix');
});

test('a closed connection keeps the address that it had', async (t) => {
  const clientOf = createClientOf([]);
  const socket = await accepted(t, { host: '127.0.0.1', port: 0 });
  clientOf(socket, {});
  socket.destroy();
  assert.equal(clientOf(socket, {}), '127.0.0.1');
});

for (const [trusted, forwarded, client] of [
  ['127.0.0.1', '192.0.2.1', '192.0.2.1'],
  ['127.0.0.1', ' 203.0.113.5 ,192.0.2.1 ', '192.0.2.1'],
  ['127.0.0.1,192.0.2.0/24', '203.0.113.5, 192.0.2.1', '203.0.113.5'],
  ['127.0.0.1,192.0.2.0/24', '192.0.2.7, 192.0.2.1', '192.0.2.7'],
  ['::ffff:127.0.0.1', '192.0.2.1', '192.0.2.1'],
  ['127.0.0.0/8', '::ffff:192.0.2.1', '192.0.2.1'],
  ['127.0.0.0/8', '::FFFF:C000:201', '192.0.2.1'],
  ['127.0.0.0/8', '2001:DB8:0:0:0::1', '2001:db8::1'],
  ['127.0.0.0/8,2001:db8::/32', '203.0.113.5, [2001:db8::1]:4711', '203.0.113.5'],
  ['127.0.0.0/8', '192.0.2.1:4711', '192.0.2.1'],
  ['10.0.0.0/8', '192.0.2.1', '127.0.0.1'],
  ['127.0.0.0/8', '', '127.0.0.1'],
  ['127.0.0.0/8', '192.0.2.1,', '127.0.0.1'],
  ['127.0.0.0/8', 'unknown', '127.0.0.1'],
  ['127.0.0.0/8', '203.0.113.5, "level":50', '127.0.0.1'],
  ['127.0.0.0/8', 'fe80::1%marked', '127.0.0.1'],
  ['127.0.0.0/8', '[fe80::1%marked]', '127.0.0.1'],
  ['127.0.0.0/8', '192.0.2.1:marked', '127.0.0.1'],
  ['127.0.0.0/8', '127.1', '127.0.0.1'],
  ['127.0.0.0/8', `${'9'.repeat(15_000)}, 192.0.2.1`, '192.0.2.1'],
  ['127.0.0.0/8', '9'.repeat(15_000), '127.0.0.1'],
  ['127.0.0.0/8', `192.0.2.1${', 127.0.0.2'.repeat(15)}`, '192.0.2.1'],
  ['127.0.0.0/8', `192.0.2.1${', 127.0.0.2'.repeat(16)}`, '127.0.0.2'],
] as const) {
  test(`with trusted proxies ${trusted}, ${forwarded.slice(0, 40)} names ${client}`, () => {
    const clientOf = createClientOf(networks(...trusted.split(',')));
    for (const socket of [local, dualStack])
      assert.equal(clientOf(socket, { 'x-forwarded-for': forwarded }), client);
  });
}

test('the network of a client is its IPv4 address, or 48 bits of its IPv6 address', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['unix', 'unix'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1::/48'],
    ['2001:db8:1::6', '2001:db8:1::/48'],
    ['2001:db8::1', '2001:db8:0::/48'],
    ['2001:db8::', '2001:db8:0::/48'],
    ['2001::3:4:5:6:7:8', '2001:0:3::/48'],
    ['::1', '0:0:0::/48'],
    ['::2:3:4:5:6:7:8', '0:2:3::/48'],
  ] as const) {
    assert.equal(givenNetwork(address), network, address);
  }
});
