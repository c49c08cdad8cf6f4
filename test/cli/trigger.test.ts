import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { eventTypes } from '../../src/domain/event.ts';
import { artsealWith } from '../support/artseal.ts';
import { commandsOver, connections, testEveryConnection } from '../support/connections.ts';
import { fileScope } from '../support/file-scope.ts';
import { startService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { triggered } from '../support/triggered.ts';

const service = await startService(fileScope);
const platform = await service.platform('ENTERPRISE', 5_000);
const developer = {
  ARTSEAL_DATA_DIR: join(service.dataDir, 'none'),
  ARTSEAL_URL: service.publicUrl,
  ARTSEAL_API_KEY: platform.apiKey,
  ARTSEAL_API_SECRET: platform.apiSecret,
};
const { admin } = await service.operator();

for (const [type, expected] of [
  ['filing.created', undefined],
  ['escrow.frozen', 'FROZEN'],
  ['escrow.released', 'RELEASED'],
  ['escrow.refunded', 'REFUNDED'],
  ['escrow.closed', 'CLOSED'],
  ['escrow.in_review', 'UNPAID'],
  ['provenance.transferred', undefined],
] as const)
  test(`trigger ${type} needs only the address, a key and its secret`, async () => {
    const { filingNo, state } = await triggered(type, developer);
    assert.match(filingNo, /^AS-\d{4}-\d{6}$/);
    assert.equal(state, expected);
  });

for (const connection of connections)
  test(`over ${connection}: trigger lists the types`, async (t) => {
    const artseal = await commandsOver(t, connection);
    const types = (await artseal.lines('trigger')).map((line) => line.split(' ')[0]);
    assert.deepEqual(
      types,
      eventTypes.filter((type) => type !== 'usage.threshold'),
    );
  });

test('the operator types leave platform and endpoints as they were, and end the key later', async () => {
  const env = { ...developer, ARTSEAL_TOKEN: await service.token(true) };
  const url = ['--url', service.internalUrl];
  const before = await admin.getPlatform({ caller: platform.caller });
  const { webhookId } = await triggered('webhook.disabled', env, ...url);
  assert.match(webhookId, /^wh_/);
  assert.equal((await triggered('key.rotated', env, ...url)).keyId, platform.keyId);
  assert.deepEqual(await admin.getPlatform({ caller: platform.caller }), before);
  assert.deepEqual((await admin.listAllWebhooks({})).webhooks, []);
  const reasons = (await admin.listAuditLog({})).entries.map((entry) => entry.reason);
  assert.equal(reasons.filter((reason) => reason === 'artseal trigger').length, 2);
  await triggered('filing.created', developer);
});

test('trigger refuses a live key, an unknown type and a rejected call', async () => {
  const artseal = artsealWith(developer);
  await artseal.errors(
    2,
    'trigger escrow.thawed',
    /takes a TYPE of filing\.created, .*, not 'escrow\.thawed'/,
  );
  // It would leave the platform with another quota, if it were killed.
  await artseal.errors(2, 'trigger usage.threshold', /takes a TYPE of /);
  const live = { ...developer, ARTSEAL_API_KEY: `ak_live_${'0'.repeat(32)}` };
  await artsealWith(live).errors(1, 'trigger filing.created', /works only in a sandbox/);
  const forged = { ...developer, ARTSEAL_API_SECRET: 'sk_sandbox_wrong' };
  await artsealWith(forged).errors(1, 'trigger filing.created', /SIGNATURE_INVALID/);
  const elsewhere = artsealWith({ ...developer, ARTSEAL_DATA_DIR: temporaryFolder(fileScope) });
  await elsewhere.text('init');
  await elsewhere.errors(
    1,
    'trigger key.rotated',
    /run this on the machine of the sandbox, .* or with --url and ARTSEAL_TOKEN: .*keyId names no key\.$/,
  );
  await elsewhere.errors(1, 'trigger webhook.disabled', /with --url .*: .*webhookId names no webhook\.$/);
  await artseal.errors(1, 'trigger key.rotated', /with --url .*: there is no database in /);
  assert.deepEqual((await admin.listAllWebhooks({})).webhooks, []);
});

testEveryConnection('trigger');
