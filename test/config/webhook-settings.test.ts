import assert from 'node:assert/strict';
import { test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { ConfigError } from '../../src/config/settings.ts';

const webhooksOf = (env: Record<string, string>) => readConfig(env).webhooks;

test('the setting names private networks for endpoints', () => {
  const { networks } = webhooksOf({ ARTSEAL_WEBHOOK_NETWORKS: '10.20.0.0/16, fd00::7' });
  assert.deepEqual(networks, [
    { family: 'ipv4', address: '10.20.0.0', bits: 16 },
    { family: 'ipv6', address: 'fd00::7', bits: 128 },
  ]);
});

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

test('a wrong address of a proxy is rejected, and the fault has no password', () => {
  const rejected = [
    ...['socks5://proxy:1080', 'proxy.internal:3128', 'http://proxy/path', 'http://proxy/?a=b'],
    ...['http://proxy/#a', 'http://proxy:0/', 'http://ann:s3cret%ff@proxy/', 'ann:s3cret@proxy', 'http://'],
  ];
  for (const text of rejected) {
    assert.throws(
      () => webhooksOf({ ARTSEAL_WEBHOOK_PROXY: text }),
      (error) => {
        assert.ok(error instanceof ConfigError);
        assert.match(error.message, /^ARTSEAL_WEBHOOK_PROXY must be the address of a proxy/);
        assert.doesNotMatch(error.message, /s3cret/);
        return true;
      },
    );
  }
});
