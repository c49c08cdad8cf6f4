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
    assert.deepEqual(types, [...eventTypes]);
  });

test('the operator types leave platform and endpoints as they were, and end the key later', async () => {
  const env = { ...developer, ARTSEAL_TOKEN: await service.token(true) };
  const url = ['--url', service.internalUrl];
  const before = await admin.getPlatform({ caller: platform.caller });
  const { percent } = await triggered('usage.threshold', env, ...url);
  assert.ok([80, 100].includes(percent), percent);
  const { webhookId } = await triggered('webhook.disabled', env, ...url);
  assert.match(webhookId, /^wh_/);
  assert.equal((await triggered('key.rotated', env, ...url)).keyId, platform.keyId);
  assert.deepEqual(await admin.getPlatform({ caller: platform.caller }), before);
  assert.deepEqual((await admin.listAllWebhooks({})).webhooks, []);
  const reasons = (await admin.listAuditLog({})).entries.map((entry) => entry.reason);
  assert.equal(reasons.filter((reason) => reason === 'artseal trigger').length, 4);
  await triggered('filing.created', developer);
});

test('usage.threshold restores each kind of agreement', async () => {
  for (const restored of [await service.platform('TRIAL'), await service.platform()]) {
    const { apiKey: ARTSEAL_API_KEY, apiSecret: ARTSEAL_API_SECRET, caller } = restored;
    const before = await admin.getPlatform({ caller });
    const env = { ...developer, ARTSEAL_API_KEY, ARTSEAL_API_SECRET, ARTSEAL_DATA_DIR: service.dataDir };
    await triggered('usage.threshold', env);
    assert.deepEqual(await admin.getPlatform({ caller }), before);
  }
});

test('trigger refuses a live key, an unknown type and a rejected call', async () => {
  const artseal = artsealWith(developer);
  await artseal.errors(
    2,
    'trigger escrow.thawed',
    /takes a TYPE of filing\.created, .*, not 'escrow\.thawed'/,
  );
  const live = { ...developer, ARTSEAL_API_KEY: `ak_live_${'0'.repeat(32)}` };
  await artsealWith(live).errors(1, 'trigger filing.created', /works only in a sandbox/);
  const forged = { ...developer, ARTSEAL_API_SECRET: 'sk_sandbox_wrong' };
  await artsealWith(forged).errors(1, 'trigger filing.created', /SIGNATURE_INVALID/);
  const elsewhere = artsealWith({ ...developer, ARTSEAL_DATA_DIR: temporaryFolder(fileScope) });
  await elsewhere.text('init');
  await elsewhere.errors(
    1,
    'trigger usage.threshold',
    /does not know ak_sandbox_\w+: it is not that of ARTSEAL_URL/,
  );
});

testEveryConnection('trigger');
