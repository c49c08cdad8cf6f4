import assert from 'node:assert/strict';
import type { RequestListener } from 'node:http';
import { type NetConnectOpts, Socket } from 'node:net';
import { describe, type TestContext, test } from 'node:test';
import type { LookUp } from '../../../src/events/webhooks/connect.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { freeAddress } from '../../support/free-address.ts';
import {
  finding,
  networksOf,
  openOutgoing,
  outcome,
  post,
  sharedOutgoing,
  startReceiver,
} from './receiver.ts';

const timeoutMs = 60_000;
const noPublic = 'its host has no public address';

/** Sends to public addresses only. */
const strict = openOutgoing(fileScope, { networks: [] });

describe('a URL of this machine is rejected, unless its network is allowed:', () => {
  for (const [form, address] of [
    ['127.1', '127.0.0.1'],
    ['0', '0.0.0.0'],
    ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]'],
    ['any.localhost', 'any.localhost'],
  ]) {
    test(`${form}`, async (t) => {
      const { port, connections } = await startReceiver(t);
      const url = `https://${form}:${port}/`;
      const expected = `its URL must have a host at a public address: ${address} is this machine`;
      assert.equal(await outcome(post(strict, url)), expected);
      assert.equal(connections(), 0);
      assert.equal(await outcome(post(sharedOutgoing, url)), 204);
      assert.equal(connections(), 1);
    });
  }
});

describe('nothing is sent to a name that stands for', () => {
  const names: readonly (readonly [string, readonly string[]])[] = [
    ['this machine', ['127.0.0.1']],
    ['this machine in another form', ['::ffff:127.0.0.1']],
    ['the unspecified address of this machine', ['0.0.0.0']],
    ['this machine and a metadata service', ['169.254.169.254', '127.0.0.1']],
  ];
  for (const [what, addresses] of names) {
    test(what, async (t) => {
      const { port, connections } = await startReceiver(t);
      const url = `https://hooks.example:${port}/`;
      const lookUp = finding(...addresses);
      const answer = await post(openOutgoing(t, { networks: [], lookUp }), url);
      assert.ok(answer.kind === 'FAILED');
      assert.equal(answer.why, noPublic, 'the platform sees no address');
      for (const address of addresses)
        assert.ok(answer.detail?.includes(`${address} is `), 'the operator is');
      assert.equal(connections(), 0);
      assert.equal(await outcome(post(openOutgoing(t, { lookUp }), url)), 204);
      assert.equal(connections(), 1);
    });
  }
});

/** Two receivers at the same port. Only one is allowed, as if it were public. */
async function startBoth(t: TestContext, listener?: RequestListener) {
  const port = Number(new URL(`tcp://${await freeAddress()}`).port);
  const open = await startReceiver(t, listener, { host: '127.0.0.2', port });
  const forbidden = await startReceiver(t, undefined, { port });
  return { open, forbidden, networks: networksOf('127.0.0.2') };
}

const closing: RequestListener = (_request, response) =>
  response.writeHead(204, { connection: 'close' }).end();

test('of the addresses of a name, only allowed ones are connected to', async (t) => {
  const { open, forbidden, networks } = await startBoth(t, closing);
  for (const addresses of [
    ['127.0.0.1', '127.0.0.2'],
    ['127.0.0.2', '127.0.0.1'],
    ['::1', '::ffff:127.0.0.1', '127.0.0.2'],
  ]) {
    const outgoing = openOutgoing(t, { networks, lookUp: finding(...addresses) });
    assert.equal(await outcome(post(outgoing, `https://hooks.example:${open.port}/`)), 204);
  }
  assert.deepEqual([open.connections(), forbidden.connections()], [3, 0]);
});

describe('a name that gets another address', () => {
  const turning = () => {
    let asked = 0;
    const lookUp: LookUp = async () => [asked++ === 0 ? '127.0.0.2' : '127.0.0.1'];
    return { lookUp, asked: () => asked };
  };

  test('is looked up once: the checked address is the one connected to', async (t) => {
    const { open, forbidden, networks } = await startBoth(t, closing);
    const { lookUp, asked } = turning();
    const outgoing = openOutgoing(t, { networks, lookUp });
    const url = `https://hooks.example:${open.port}/`;
    assert.equal(await outcome(post(outgoing, url)), 204);
    assert.equal(asked(), 1);
    assert.equal(await outcome(post(outgoing, url)), noPublic);
    assert.equal(asked(), 2);
    assert.deepEqual([open.connections(), forbidden.connections()], [1, 0]);
    const allowed = openOutgoing(t, { lookUp: finding('127.0.0.1') });
    assert.equal(await outcome(post(allowed, url)), 204);
    assert.equal(forbidden.connections(), 1);
  });

  test('has no effect on a kept connection', async (t) => {
    const { open, forbidden, networks } = await startBoth(t);
    const { lookUp, asked } = turning();
    const outgoing = openOutgoing(t, { networks, lookUp });
    for (let times = 0; times < 3; times += 1)
      assert.equal(await outcome(post(outgoing, `https://hooks.example:${open.port}/`)), 204);
    assert.equal(asked(), 1);
    assert.deepEqual([open.connections(), forbidden.connections()], [1, 0]);
  });

  test('is checked again after a kept connection was closed', async (t) => {
    const seen = new WeakSet<object>();
    const { open, forbidden, networks } = await startBoth(t, ({ socket }, response) => {
      if (seen.has(socket)) return socket.destroy();
      seen.add(socket);
      return response.writeHead(204).end();
    });
    const outgoing = openOutgoing(t, { networks, lookUp: turning().lookUp });
    const url = `https://hooks.example:${open.port}/`;
    assert.equal(await outcome(post(outgoing, url)), 204);
    assert.equal(await outcome(post(outgoing, url)), noPublic);
    assert.deepEqual([open.connections(), forbidden.connections()], [1, 0]);
  });
});

test('a connection to another address than the checked one is closed before a byte is written', async (t) => {
  const { open, forbidden, networks } = await startBoth(t);
  const connect = Socket.prototype.connect as (this: Socket, options: NetConnectOpts) => Socket;
  const elsewhere = t.mock.method(Socket.prototype, 'connect', function (this: Socket) {
    return connect.call(this, { host: '127.0.0.1', port: open.port });
  });
  const outgoing = openOutgoing(t, { networks, lookUp: finding('127.0.0.2') });
  assert.equal(await outcome(post(outgoing, `https://hooks.example:${open.port}/`)), noPublic);
  assert.equal(elsewhere.mock.callCount(), 1);
  await eventually('it arrived', timeoutMs, () => forbidden.connections() === 1);
  await eventually('it is ended', timeoutMs, () => forbidden.sockets.size === 0);
  assert.equal(forbidden.receivedBytes(), 0);
});
