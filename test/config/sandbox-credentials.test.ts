import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { issueSandboxCredentials, readSandboxCredentials } from '../../src/config/sandbox-credentials.ts';
import { tester } from '../support/audit-log.ts';
import { readableNames } from '../support/copy-folder.ts';
import { startService } from '../support/service.ts';

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
