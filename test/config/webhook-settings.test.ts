import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';

const webhooksOf = (env: Record<string, string>) => readConfig(env).webhooks;

test('by default only a sandbox that listens on loopback sends webhooks to loopback', () => {
  const production = {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY: `main:${'ab'.repeat(32)}`,
    ARTSEAL_TLOG_ORIGIN: 'log.example/artseal',
  };
  const named = { ARTSEAL_WEBHOOK_NETWORKS: '10.20.0.0/16' };
  const found = (env: Record<string, string>) => {
    const { networks, plainLoopback } = webhooksOf(env);
    return [networks.map(({ address }) => address), plainLoopback];
  };
  assert.deepEqual(found({}), [['127.0.0.0', '::1'], true]);
  assert.deepEqual(found(named), [['10.20.0.0'], true]);
  for (const ARTSEAL_PUBLIC_ADDR of ['0.0.0.0:8080', 'artseal.example:8080'])
    assert.deepEqual(found({ ARTSEAL_PUBLIC_ADDR }), [[], false]);
  assert.deepEqual(found({ ARTSEAL_WEBHOOK_PROXY: 'http://proxy.internal:3128' }), [[], false]);
  assert.deepEqual(found(production), [[], false]);
  assert.deepEqual(found({ ...production, ARTSEAL_WEBHOOK_NETWORKS: '127.0.0.1' }), [['127.0.0.1'], false]);
});

test('a proxy has an address, and may have a user and a password', () => {
  for (const text of ['http://proxy.internal:3128', 'https://ann:s%3Acret@[fd00::1]', 'http://10.0.0.1/'])
    assert.deepEqual(webhooksOf({ ARTSEAL_WEBHOOK_PROXY: text }).proxy, new URL(text));
});
