import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { skipUnlessUnshared } from '../support/namespaces.ts';

/** Root of a network of its own, which has only loopback. */
const ownNetwork = ['--map-root-user', '--net'];

const addressIsAdded = [...ownNetwork, 'ip', 'address', 'add', '2606:4700::1/128', 'dev', 'lo'];

test('webhooks are sent only to public addresses, on a machine that has each of them', {
  skip: skipUnlessUnshared(addressIsAdded, 'ip'),
}, () => {
  const program = join(import.meta.dirname, '..', 'events', 'webhooks', 'own-network.ts');
  // Without this variable the child does not report to the test runner of this process.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const words = [...ownNetwork, process.execPath, '--test-reporter=tap', program];
  const { status, stdout, stderr } = spawnSync('unshare', words, { env, encoding: 'utf8' });
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /^# pass [3-9]\d$/m, 'tests were found');
});
