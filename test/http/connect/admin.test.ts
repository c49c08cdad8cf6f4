import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Key_Tier, Party_Role } from '../../../gen/artseal/v1/admin_pb.ts';
import type { Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { fileScope } from '../../support/file-scope.ts';
import { stripeSettings } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { openTestProvider } from '../../support/simulator.ts';
import { typedError } from '../../support/typed-clients.ts';

/** test/cli has what operators do with keys, platforms, usage, events, webhooks and links. */
const service = await startService(fileScope, {
  provider: openTestProvider(fileScope),
  env: stripeSettings,
});
const { admin } = await service.operator();

test('every call that changes something stores its reason', async () => {
  const { keyId, caller } = await service.platform();
  const rotatable = await service.platform();
  const seller = { caller, role: Party_Role.SELLER, partyId: 'seller-1' };
  const provided = { ...seller, providerIds: { account: 'acct_1' } };
  const changes: readonly ((reason: string) => Promise<unknown>)[] = [
    (reason) => admin.createKey({ name: `gallery ${reason}`, tier: 1, reason }),
    (reason) => admin.rotateKey({ keyId: rotatable.keyId, reason }),
    (reason) => admin.suspendKey({ keyId, reason }),
    (reason) => admin.resumeKey({ keyId, reason }),
    (reason) => admin.revokeKey({ keyId, reason }),
    (reason) => admin.suspendPlatform({ caller, reason }),
    (reason) => admin.resumePlatform({ caller, reason }),
    (reason) => admin.updatePlatform({ caller, filingCap: 7n, reason }),
    (reason) => admin.createToken({ name: 'office', reason }),
    (reason) => admin.addParty({ ...provided, reason }),
    (reason) => admin.removeParty({ ...seller, reason }),
    (reason) => admin.importParties({ parties: [provided], reason }),
  ];
  for (const [place, change] of changes.entries()) {
    await change(`why ${place}`);
    const [entry] = (await admin.listAuditLog({ pageSize: 1 })).entries;
    assert.equal(entry?.reason, `why ${place}`);
  }
});

/** test/domain/caller.test.ts has all rules of agreements. */
test('a rejected call names the fields that break a rule, and changes nothing', async () => {
  const { caller, keyId } = await service.platform();
  const { webhooks } = await service.clients({ scopes: ['webhook'] });
  const { webhook } = await webhooks.createWebhook({ url: 'https://ledger.example/hooks' });
  const webhookName = { webhookId: webhook?.webhookId ?? '' };
  const state = async () => [await admin.listKeys({}), await admin.listPlatforms({})];
  const before = await state();
  const { ENTERPRISE, TIER_UNSPECIFIED } = Key_Tier;
  const status = /^status must be ENABLED or DISABLED/;
  for (const [call, message] of [
    [() => admin.createKey({}), /^name .*; tier /],
    [() => admin.createKey({ name: 'museum', tier: TIER_UNSPECIFIED }), /^tier /],
    [() => admin.createKey({ name: 'museum', tier: 9 as Key_Tier }), /^tier /],
    [
      () => admin.createKey({ name: 'museum', tier: ENTERPRISE, monthlyQuota: 2n ** 53n + 1n }),
      /^monthlyQuota /,
    ],
    [
      () => admin.updatePlatform({ caller, tier: 9 as Key_Tier }),
      /^tier must be one of TRIAL, STANDARD, ENTERPRISE/,
    ],
    [
      () => admin.updatePlatform({ caller, filingCap: 5n, noFilingCap: true }),
      /^filingCap cannot be both a number and none/,
    ],
    [() => admin.rotateKey({ keyId, overlapSeconds: 2_592_001 }), /^overlapSeconds .*2592000/],
    [() => admin.getUsage({ caller, month: '2026-13' }), /^month /],
    [() => admin.listUsage({ month: '2026-13' }), /^month /],
    [
      () => admin.listAllEvents({ since: '2026-11-21T12:00:00Z', after: 0n }),
      /^since must be left out if after is given/,
    ],
    [() => admin.listAllWebhooks({ status: 3 as Webhook_Status }), status],
    [() => admin.setWebhookStatus(webhookName), status],
    [() => admin.setWebhookStatus({ ...webhookName, status: 3 as Webhook_Status }), status],
    [() => admin.redeliverEvents(webhookName), /^sequence is required unless since is given/],
  ] as const)
    assert.match((await typedError(call(), 'VALIDATION_FAILED')).message, message);
  assert.deepEqual(await state(), before);
});
