import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { skipUnlessUnshared } from '../support/namespaces.ts';

/** Root of a network of its own, which has only loopback. */
const ownNetwork = ['--map-root-user', '--net'];

const buffersAreSmall = [...ownNetwork, 'sh', '-c', 'echo 4096 4096 4096 > /proc/sys/net/ipv4/tcp_rmem'];

test('unread responses take little memory, over a network with small packets', {
  skip: skipUnlessUnshared(buffersAreSmall, 'ip'),
}, (t) => {
  const program = join(import.meta.dirname, 'children', 'unread-answers.ts');
  // Without this variable the child does not report to the test runner of this process.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const words = [...ownNetwork, process.execPath, '--test-reporter=tap', program];
  const { status, stdout, stderr } = spawnSync('unshare', words, { env, encoding: 'utf8' });
  for (const grown of stdout.match(/# grown .*/g) ?? []) t.diagnostic(grown.slice(2));
  assert.equal(status, 0, stdout + stderr);
  assert.match(stdout, /^# pass [3-9]$/m, 'tests were found');
});
