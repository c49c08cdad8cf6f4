/**
 * Tests on a network of their own, in which every address is one of this machine: test/process/own-network.slow.test.ts runs them there.
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import type { RequestListener } from 'node:http';
import { describe, test } from 'node:test';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { finding, networksOf, openOutgoing, outcome, post, startReceiver } from './receiver.ts';

const open = ['93.184.215.14', '2606:4700::1111'];
const forbidden = [
  ...['10.1.2.3', '100.64.0.1', '127.1.2.3', '168.63.129.16', '169.254.169.254', '172.16.0.1', '192.0.0.192'],
  ...['192.0.2.1', '192.88.99.1', '192.168.1.1', '198.18.0.1', '198.51.100.1', '203.0.113.1', '240.0.0.1'],
  ...['::127.0.0.1', '64:ff9b::7f00:1', '64:ff9b:1::1', '100::1', '2001:0:7f00:1::1', '2001:db8::1'],
  ...['2002:7f00:1::1', '3fff::1', '5f00::1', 'fc00::1', 'fd00:ec2::254', 'fec0::1'],
];
/** Addresses of this machine in several forms, and the networks that allow them. */
const leading: Readonly<Record<string, readonly string[]>> = {
  '127.0.0.1': ['127.0.0.1'],
  '::1': ['::1'],
  // A connection to them is one to loopback.
  '0.0.0.0': ['0.0.0.0', '127.0.0.1'],
  '::': ['::', '::1'],
  '::ffff:127.0.0.1': ['127.0.0.1'],
  '::ffff:10.1.2.3': ['10.1.2.3'],
  '::ffff:169.254.169.254': ['169.254.169.254'],
  'fe80::1%lo': ['fe80::1'],
};

const ip = (...words: readonly string[]) => execFileSync('ip', words);
ip('link', 'set', 'lo', 'up');
for (const address of [...open, ...forbidden, 'fe80::1'])
  ip('address', 'add', `${address}/${address.includes(':') ? 128 : 32}`, 'dev', 'lo');

/** At which addresses requests arrived. */
const arrived: (string | undefined)[] = [];
const listener: RequestListener = ({ socket }, response) => {
  arrived.push(socket.localAddress?.replace('::ffff:', ''));
  response.writeHead(204, { connection: 'close' }).end();
};
const receiver = await startReceiver(fileScope, listener, { host: '::' });
const url = `https://hooks.example:${receiver.port}/`;

describe('a name with this address is rejected, unless its network is allowed:', () => {
  const cases = { ...Object.fromEntries(forbidden.map((one) => [one, [one]])), ...leading };
  for (const [address, networks] of Object.entries(cases)) {
    test(address, async (t) => {
      const before = receiver.connections();
      const lookUp = finding(address);
      const answer = outcome(post(openOutgoing(t, { networks: [], lookUp }), url));
      assert.equal(await answer, 'its host has no public address');
      assert.equal(receiver.connections(), before);
      const allowed = openOutgoing(t, { networks: networksOf(...networks), lookUp });
      assert.equal(await outcome(post(allowed, url)), 204);
      assert.equal(receiver.connections(), before + 1);
    });
  }
});

describe('a name with a public address gets requests, whatever other addresses it has:', () => {
  for (const address of open) {
    test(address, async (t) => {
      const before = receiver.connections();
      const lookUp = finding('127.0.0.1', address, '::1', '10.1.2.3');
      const outgoing = openOutgoing(t, { networks: [], lookUp });
      assert.equal(await outcome(post(outgoing, url)), 204);
      assert.deepEqual([arrived.at(-1), receiver.connections()], [address, before + 1]);
    });
  }
});

test('a name that is public at first and then this machine gets one request', async (t) => {
  const before = receiver.connections();
  const addresses = ['93.184.215.14', '127.0.0.1'];
  const outgoing = openOutgoing(t, { networks: [], lookUp: async () => addresses.splice(0, 1) });
  assert.equal(await outcome(post(outgoing, url)), 204);
  assert.equal(await outcome(post(outgoing, url)), 'its host has no public address');
  assert.deepEqual([arrived.at(-1), receiver.connections()], ['93.184.215.14', before + 1]);
});

test('an address without a route cannot be reached', async (t) => {
  const outgoing = openOutgoing(t, { networks: [], lookUp: finding('8.8.8.8') });
  assert.equal(await outcome(post(outgoing, url)), 'it cannot be reached');
});

test('an address that does not respond times out after 15 seconds', async (t) => {
  // What is sent there comes back to this machine, which has no such address, and is dropped.
  ip('route', 'add', '8.8.4.0/24', 'dev', 'lo');
  const clock = createManualClock();
  const outgoing = openOutgoing(t, { networks: [], lookUp: finding('8.8.4.4'), clock });
  const answer = outcome(post(outgoing, url));
  await eventually('it is called', 60_000, () =>
    execFileSync('ss', ['-nt', 'state', 'syn-sent']).includes('8.8.4.4'),
  );
  clock.advance(15_000);
  assert.equal(await answer, 'it sent no complete response within 15 seconds');
  assert.ok(!execFileSync('ss', ['-nt', 'state', 'syn-sent']).includes('8.8.4.4'));
});
