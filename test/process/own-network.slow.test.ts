import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { skipUnlessUnshared } from '../support/namespaces.ts';

/** As root of a network of its own, which has nothing but loopback. */
const ownNetwork = ['--map-root-user', '--net'];

const addressIsAdded = [...ownNetwork, 'ip', 'address', 'add', '2606:4700::1/128', 'dev', 'lo'];

test('of all addresses only public ones are sent to, tried where each is one of this machine', {
  skip: skipUnlessUnshared(addressIsAdded, 'ip'),
}, () => {
  const program = join(import.meta.dirname, '..', 'events', 'webhooks', 'own-network.ts');
  // What runs within a test would report to it otherwise.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const words = [...ownNetwork, process.execPath, '--test-reporter=tap', program];
  const { status, stdout, stderr } = spawnSync('unshare', words, { env, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /^# pass [3-9]\d$/m, 'tests were found');
});
