import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { Key_Status, Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import type { Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { tokenTerms } from '../../support/tokens.ts';
import { typedError } from '../../support/typed-clients.ts';

const { TRIAL, STANDARD, ENTERPRISE, TIER_UNSPECIFIED } = Key_Tier;
const noon = Date.parse('2026-11-21T12:00:00Z');
const clock = createManualClock(noon);
const service = await startService(fileScope, { clock });
const { admin } = await service.operator();
await service.issuance.issueToken(tokenTerms('ledger'), tester);

/** A service of its own, for a test that reads whole lists. */
async function startEmpty(test: TestContext) {
  const started = await startService(test, { clock: createManualClock(noon) });
  return { service: started, admin: (await started.operator()).admin };
}

let galleries = 0;

/** Creates a TRIAL platform and its key. */
async function createGallery() {
  galleries += 1;
  const caller = `gallery ${galleries}`;
  const { key, apiSecret } = await admin.createKey({ name: caller, tier: TRIAL });
  assert.ok(key);
  return { caller, key, keyId: key.keyId, apiSecret };
}

/** The keys of a platform, oldest first. */
async function keysOf(name: string) {
  return (await admin.listKeys({ pageSize: 100 })).keys.filter(({ caller }) => caller === name);
}

/** The fields that a message of VALIDATION_FAILED names. */
const fieldsIn = (message: string) =>
  message
    .split('; ')
    .map((sentence) => sentence.split(' ')[0])
    .join('; ');

test('CreateKey returns a key with the quota of its tier, and its secret', async () => {
  const { caller, key, apiSecret } = await createGallery();
  assert.match(key.keyId, /^key_/);
  assert.match(key.apiKey, /^ak_sandbox_/);
  assert.match(apiSecret, /^sk_sandbox_/);
  assert.deepEqual(
    [key.caller, key.tier, key.monthlyQuota, key.status],
    [caller, TRIAL, 1_000n, Key_Status.ACTIVE],
  );
  assert.deepEqual([key.createdAt, key.expiresAt], ['2026-11-21T12:00:00+00:00', '']);
  const standard = await admin.createKey({ name: 'auction house', tier: STANDARD });
  assert.equal(standard.key?.monthlyQuota, 10_000n);
  assert.notEqual(standard.apiSecret, apiSecret);
  const listed = await keysOf(caller);
  assert.deepEqual(listed, [key]);
  const shown = JSON.stringify(listed, (_, value) => (typeof value === 'bigint' ? String(value) : value));
  assert.ok(!shown.includes(apiSecret) && !service.logLines.join('').includes(apiSecret));
});

/** test/domain/caller.test.ts has all rules. */
const brokenAgreements: readonly (readonly [fields: string, request: object])[] = [
  ['name; tier', {}],
  ['tier', { name: 'museum', tier: TIER_UNSPECIFIED }],
  ['tier', { name: 'museum', tier: 9 }],
  ['monthlyQuota', { name: 'museum', tier: ENTERPRISE, monthlyQuota: 2n ** 53n + 1n }],
];

test('CreateKey names the fields of an agreement that break a rule, and creates nothing', async () => {
  for (const [fields, request] of brokenAgreements) {
    const { message } = await typedError(admin.createKey(request), 'VALIDATION_FAILED');
    assert.equal(fieldsIn(message), fields, message);
  }
  assert.deepEqual(await keysOf('museum'), []);
});

test('keys, platforms and usage are listed oldest first, page by page', async (t) => {
  const { service: own, admin: office } = await startEmpty(t);
  for (const name of ['c', 'a', 'b']) await office.createKey({ name, tier: TRIAL });
  await own.issuance.issueToken(tokenTerms('ledger'), tester);
  await office.suspendPlatform({ caller: 'a' });
  const pages = async <T extends { nextPageToken: string }>(list: (pageToken: string) => Promise<T>) => {
    const found: T[] = [];
    do found.push(await list(found.at(-1)?.nextPageToken ?? ''));
    while (found.at(-1)?.nextPageToken !== '');
    return found;
  };
  const keys = await pages((pageToken) => office.listKeys({ pageSize: 2, pageToken }));
  assert.deepEqual(
    keys.map((page) => page.keys.map(({ caller }) => caller)),
    [['c', 'a'], ['b']],
  );
  assert.equal((await office.listKeys({ pageSize: 3 })).nextPageToken, '');
  const platforms = await pages((pageToken) => office.listPlatforms({ pageSize: 2, pageToken }));
  assert.deepEqual(
    platforms.map((page) => page.platforms.map(({ caller }) => caller)),
    [['c', 'a'], ['b']],
  );
  const [, suspended] = platforms[0]?.platforms ?? [];
  assert.deepEqual(suspended, (await office.getPlatform({ caller: 'a' })).platform);
  const usages = await pages((pageToken) => office.listUsage({ month: '2026-10', pageSize: 2, pageToken }));
  assert.deepEqual(
    usages.map(({ month, usages: found }) => [month, ...found.map(({ platform }) => platform?.caller)]),
    [
      ['2026-10', 'c', 'a'],
      ['2026-10', 'b'],
    ],
  );
  assert.deepEqual(usages[0]?.usages[1]?.platform, suspended);
});

test('calls about an unknown platform get NOT_FOUND', async () => {
  const { caller } = await createGallery();
  for (const name of ['', caller.toUpperCase(), 'ledger']) {
    await typedError(admin.getPlatform({ caller: name }), 'NOT_FOUND');
    await typedError(admin.getUsage({ caller: name }), 'NOT_FOUND');
  }
});

test('UpdatePlatform changes the fields of the agreement that it gets, and keeps the others', async () => {
  const { caller } = await createGallery();
  const update = async (change: object) => {
    const { platform } = await admin.updatePlatform({ caller, ...change });
    assert.deepEqual((await admin.getPlatform({ caller })).platform, platform);
    assert.equal((await keysOf(caller))[0]?.monthlyQuota, platform?.monthlyQuota);
    return [platform?.tier, platform?.monthlyQuota, platform?.filingCap];
  };
  assert.deepEqual(await update({ tier: STANDARD }), [STANDARD, 10_000n, undefined]);
  assert.deepEqual(await update({ filingCap: 500n }), [STANDARD, 10_000n, 500n]);
  assert.deepEqual(await update({ tier: ENTERPRISE, monthlyQuota: 7n }), [ENTERPRISE, 7n, 500n]);
  assert.deepEqual(await update({ noFilingCap: true }), [ENTERPRISE, 7n, undefined]);
  assert.deepEqual(await update({ unlimited: true }), [ENTERPRISE, undefined, undefined]);
});

test('UpdatePlatform names the field that breaks a rule, and changes nothing', async () => {
  const { caller } = await createGallery();
  const rejected: readonly (readonly [change: object, message: RegExp])[] = [
    [{ tier: 9 }, /^tier must be one of TRIAL, STANDARD, ENTERPRISE/],
    [{ filingCap: 5n, noFilingCap: true }, /^filingCap cannot be both a number and none/],
  ];
  for (const [change, expected] of rejected) {
    const { message } = await typedError(admin.updatePlatform({ caller, ...change }), 'VALIDATION_FAILED');
    assert.match(message, expected);
  }
  const { platform } = await admin.getPlatform({ caller });
  assert.deepEqual([platform?.tier, platform?.monthlyQuota], [TRIAL, 1_000n]);
});

test('RotateKey issues a further key and gives the old one an end', async () => {
  const { caller, key: old, keyId } = await createGallery();
  const { key, apiSecret } = await admin.rotateKey({ keyId });
  assert.notEqual(key?.keyId, keyId);
  assert.notEqual(key?.apiKey, old.apiKey);
  assert.match(apiSecret, /^sk_sandbox_/);
  assert.deepEqual([key?.caller, key?.tier, key?.expiresAt], [caller, TRIAL, '']);
  const endOfOld = async () => (await keysOf(caller))[0]?.expiresAt;
  assert.equal(await endOfOld(), '2026-11-22T12:00:00+00:00');
  await admin.rotateKey({ keyId, overlapSeconds: 60 });
  assert.equal(await endOfOld(), '2026-11-21T12:01:00+00:00');
  const tooLong = admin.rotateKey({ keyId, overlapSeconds: 2_592_001 });
  assert.match((await typedError(tooLong, 'VALIDATION_FAILED')).message, /^overlapSeconds .*2592000/);
  assert.equal((await keysOf(caller)).length, 3);
});

test('usage counts the calls of a platform in a month of the business time zone', async (t) => {
  // Still November in UTC.
  const midnight = createManualClock(Date.parse('2026-11-30T16:30:00Z'));
  const started = await startService(t, { clock: midnight, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
  const { admin: office } = await started.operator();
  const { key, apiSecret } = await office.createKey({ name: 'gallery', tier: TRIAL });
  const credentials = { apiKey: key?.apiKey ?? '', apiSecret };
  const call = () =>
    send(started.publicUrl, credentials, {
      target: '/api/v1/provenance/AS-2026-000001',
      timestamp: String(Math.floor(midnight.nowMs() / 1000)),
    });
  for (let count = 0; count < 3; count += 1) assert.equal((await call()).status, 404);
  const usage = await office.getUsage({ caller: 'gallery' });
  assert.deepEqual(
    [usage.caller, usage.month, usage.calls, usage.monthlyQuota],
    ['gallery', '2026-12', 3n, 1_000n],
  );
  assert.equal((await office.getUsage({ caller: 'gallery', month: '2026-11' })).calls, 0n);
  for (const wrong of [office.getUsage({ month: '2026-13' }), office.listUsage({ month: '2026-13' })])
    await typedError(wrong, 'VALIDATION_FAILED');
  const of = async (request: object) => {
    const { month, usages } = await office.listUsage(request);
    return [month, ...usages.map(({ platform, calls, remaining }) => [platform?.caller, calls, remaining])];
  };
  assert.deepEqual(await of({}), ['2026-12', ['gallery', 3n, 997n]]);
  assert.deepEqual(await of({ month: '2026-11' }), ['2026-11', ['gallery', 0n, 1_000n]]);
  await office.updatePlatform({ caller: 'gallery', tier: ENTERPRISE, monthlyQuota: 2n });
  assert.deepEqual(await of({}), ['2026-12', ['gallery', 3n, 0n]]);
  await office.updatePlatform({ caller: 'gallery', unlimited: true });
  assert.deepEqual(await of({}), ['2026-12', ['gallery', 3n, undefined]]);
});

test('a suspended platform is rejected with each of its keys until it is resumed', async () => {
  const { caller, key, keyId, apiSecret } = await createGallery();
  const second = await admin.rotateKey({ keyId });
  await admin.suspendPlatform({ caller });
  const third = await admin.rotateKey({ keyId: second.key?.keyId ?? '' });
  const timestamp = String(Math.floor(clock.nowMs() / 1000));
  const call = { target: '/api/v1/provenance/AS-1999-000001', timestamp };
  const codes = async () => {
    const found: string[] = [];
    for (const issued of [{ key, apiSecret }, second, third]) {
      const credentials = { apiKey: issued.key?.apiKey ?? '', apiSecret: issued.apiSecret };
      const { json } = await send(service.publicUrl, credentials, call);
      found.push(`${json.code}: ${json.message}`);
    }
    return found;
  };
  assert.deepEqual(
    await codes(),
    Array(3).fill('KEY_SUSPENDED: The platform is suspended; ask the operator.'),
  );
  await admin.resumePlatform({ caller });
  for (const code of await codes()) assert.match(code, /^FILING_NOT_FOUND: /);
});

test('every call that changes something stores its reason', async () => {
  const { keyId, caller } = await service.platform();
  const rotatable = await service.platform();
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
  ];
  for (const [place, change] of changes.entries()) {
    await change(`why ${place}`);
    const [entry] = (await admin.listAuditLog({ pageSize: 1 })).entries;
    assert.equal(entry?.reason, `why ${place}`);
  }
});

/** test/cli has what operators do with keys, platforms, events, webhooks and links. */
test('calls on events and webhooks name the field that breaks a rule', async () => {
  const { webhooks } = await service.clients({ scopes: ['webhook'] });
  const { webhook } = await webhooks.createWebhook({ url: 'https://ledger.example/hooks' });
  const name = { webhookId: webhook?.webhookId ?? '' };
  const status = /^status must be ENABLED or DISABLED/;
  for (const [call, message] of [
    [
      admin.listAllEvents({ since: '2026-11-21T12:00:00Z', after: 0n }),
      /^since must be left out if after is given/,
    ],
    [admin.listAllWebhooks({ status: 3 as Webhook_Status }), status],
    [admin.setWebhookStatus(name), status],
    [admin.setWebhookStatus({ ...name, status: 3 as Webhook_Status }), status],
    [admin.redeliverEvents(name), /^sequence is required unless since is given/],
  ] as const)
    assert.match((await typedError(call, 'VALIDATION_FAILED')).message, message);
});
