import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { skipUnlessUnshared } from '../support/namespaces.ts';

/** Root of a network of its own, which has only loopback. */
const ownNetwork = ['--map-root-user', '--net'];

/** Files of tests that run on a network of their own, each with what it has to be able to do there. */
const programs = [
  {
    what: 'webhooks are sent only to public addresses, on a machine that has each of them',
    program: '../events/webhooks/own-network.ts',
    trial: ['ip', 'address', 'add', '2606:4700::1/128', 'dev', 'lo'],
    passed: /^# pass [3-9]\d$/m,
  },
  {
    what: 'unread responses take little memory, over a network with small packets',
    program: 'children/unread-answers.ts',
    trial: ['sh', '-c', 'echo 4096 4096 4096 > /proc/sys/net/ipv4/tcp_rmem'],
    passed: /^# pass [3-9]$/m,
  },
];

for (const { what, program, trial, passed } of programs)
  test(what, { skip: skipUnlessUnshared([...ownNetwork, ...trial], 'ip') }, (t) => {
    // Without this variable the child does not report to the test runner of this process.
    const { NODE_TEST_CONTEXT: _, ...env } = process.env;
    const file = join(import.meta.dirname, program);
    const words = [...ownNetwork, process.execPath, '--test-reporter=tap', file];
    const { status, stdout, stderr } = spawnSync('unshare', words, { env, encoding: 'utf8' });
    for (const grown of stdout.match(/# grown .*/g) ?? []) t.diagnostic(grown.slice(2));
    assert.equal(status, 0, stdout + stderr);
    assert.match(stdout, passed, 'tests were found');
  });
