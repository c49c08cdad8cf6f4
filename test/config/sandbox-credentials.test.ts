import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { issueSandboxCredentials, readSandboxCredentials } from '../../src/config/sandbox-credentials.ts';
import { tester } from '../support/audit-log.ts';
import { readableNames } from '../support/copy-folder.ts';
import { startService } from '../support/service.ts';

test('credentials of a sandbox are issued once, to their documented members', async (t) => {
  const service = await startService(t);
  const { dataDir } = service;
  assert.equal(await issueSandboxCredentials(service, dataDir, tester), true);
  const credentials = readSandboxCredentials(dataDir) ?? assert.fail();
  const { keyId, apiKey, apiSecret, caller, tier, token, ...more } = credentials;
  assert.deepEqual([caller, tier, more], ['sandbox-platform', 'ENTERPRISE', {}]);
  assert.match([keyId, apiKey, token].join(' '), /^key_[0-9a-f]+ ak_sandbox_[0-9A-Za-z]+ it_[0-9A-Za-z_]+$/);
  assert.ok(apiSecret.length >= 32);
  assert.equal(await issueSandboxCredentials(service, dataDir, tester), false);
  assert.deepEqual(readSandboxCredentials(dataDir), credentials);
});

test('no credentials of a sandbox are issued after a key or a token', async (t) => {
  for (const issue of ['platform', 'token'] as const) {
    const service = await startService(t);
    await service[issue]();
    assert.equal(await issueSandboxCredentials(service, service.dataDir, tester), false, issue);
    assert.equal(readSandboxCredentials(service.dataDir), undefined);
  }
});

test('a sandbox uses the master key of its operator, and writes it nowhere', async (t) => {
  const key = '0123456789abcdef'.repeat(4);
  const service = await startService(t, { env: { ARTSEAL_MASTER_KEY: `main:${key}` } });
  await service.platform();
  assert.equal(existsSync(join(service.dataDir, 'master-key')), false);
  for (const name of readableNames(service.dataDir))
    assert.equal(readFileSync(join(service.dataDir, name)).includes(key), false, name);
});
