import assert from 'node:assert/strict';
import { test } from 'node:test';
import { AdminService, Key_Status, Key_Tier, Platform_Status } from '../../../gen/artseal/v1/admin_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { tester } from '../../support/audit-log.ts';
import { createManualClock } from '../../support/clock.ts';
import { type ServiceOptions, startService, type TestService } from '../../support/service.ts';
import { send } from '../../support/signed-request.ts';
import { tokenTerms } from '../../support/tokens.ts';
import { typedClients, typedRefusal } from '../../support/typed-clients.ts';

type Cleanup = Parameters<typeof startService>[0];

async function startWithOperator(test: Cleanup, options: ServiceOptions = {}) {
  const service = await startService(test, options);
  return { service, admin: await adminOf(service, true) };
}

async function adminOf(service: TestService, operator: boolean) {
  return typedClients(createTypedTransport(service.internalUrl, await service.token(operator))).admin;
}

const trial = { name: 'gallery', tier: Key_Tier.TRIAL };
const noon = Date.parse('2026-11-21T12:00:00Z');
const timestamp = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/;

for (const { localName } of AdminService.methods) {
  test(`${localName} is for operators: another internal system is refused whatever it asks`, async (t) => {
    const service = await startService(t);
    const admin = await adminOf(service, false);
    const call = admin[localName as keyof typeof admin] as (request: object) => Promise<unknown>;
    await typedRefusal(call({}), 'PERMISSION_DENIED');
  });
}

test('a key is created with what its tier allows, and its secret is shown this once', async (t) => {
  const { service, admin } = await startWithOperator(t, { clock: createManualClock(noon) });
  const { key, apiSecret } = await admin.createKey(trial);
  assert.ok(key);
  assert.match(key.keyId, /^key_/);
  assert.match(key.apiKey, /^ak_sandbox_/);
  assert.match(apiSecret, /^sk_sandbox_/);
  const { caller, tier, monthlyQuota, status, createdAt, expiresAt } = key;
  assert.deepEqual(
    [caller, tier, monthlyQuota, status],
    ['gallery', Key_Tier.TRIAL, 1_000n, Key_Status.ACTIVE],
  );
  assert.deepEqual([createdAt, expiresAt], ['2026-11-21T12:00:00+00:00', '']);
  const standard = await admin.createKey({ name: 'auction house', tier: Key_Tier.STANDARD });
  assert.equal(standard.key?.monthlyQuota, 10_000n);
  assert.notEqual(standard.apiSecret, apiSecret);
  const { keys } = await admin.listKeys({});
  assert.deepEqual(keys[0], key);
  await service.close();
  assert.ok(!service.logLines.join('').includes(apiSecret), 'the log has no secret');
});

test('an ENTERPRISE key has the quota that was agreed, or none', async (t) => {
  const { admin } = await startWithOperator(t);
  const tier = Key_Tier.ENTERPRISE;
  const highest = BigInt(Number.MAX_SAFE_INTEGER);
  const agreed = await admin.createKey({ name: 'agreed', tier, monthlyQuota: highest });
  assert.equal(agreed.key?.monthlyQuota, highest);
  const unlimited = await admin.createKey({ name: 'unlimited', tier, unlimited: true });
  assert.equal(unlimited.key?.monthlyQuota, undefined);
});

const { TRIAL, STANDARD, ENTERPRISE, TIER_UNSPECIFIED } = Key_Tier;
const agreements: readonly (readonly [fields: string, request: object])[] = [
  ['name; tier', {}],
  ['name', { name: '', tier: TRIAL }],
  ['name', { name: ' \u2003', tier: TRIAL }],
  ['name', { name: 'a\nb', tier: TRIAL }],
  ['name', { name: 'x'.repeat(129), tier: TRIAL }],
  ['tier', { name: 'gallery', tier: TIER_UNSPECIFIED }],
  ['tier', { name: 'gallery', tier: 9 }],
  ['monthlyQuota', { name: 'gallery', tier: ENTERPRISE }],
  ['monthlyQuota', { name: 'gallery', tier: ENTERPRISE, monthlyQuota: 0n }],
  ['monthlyQuota', { name: 'gallery', tier: ENTERPRISE, monthlyQuota: -1n }],
  ['monthlyQuota', { name: 'gallery', tier: ENTERPRISE, monthlyQuota: 2n ** 53n }],
  ['monthlyQuota', { name: 'gallery', tier: ENTERPRISE, monthlyQuota: 2n ** 53n + 1n }],
  ['monthlyQuota', { name: 'gallery', tier: ENTERPRISE, monthlyQuota: 5n, unlimited: true }],
  ['monthlyQuota', { name: 'gallery', tier: TRIAL, monthlyQuota: 5n }],
  ['monthlyQuota', { name: 'gallery', tier: STANDARD, unlimited: true }],
];

test('an agreement that breaks a rule is refused by the names of its fields, and nothing is issued', async (t) => {
  const { admin } = await startWithOperator(t);
  for (const [fields, request] of agreements) {
    const { message } = await typedRefusal(admin.createKey(request), 'VALIDATION_FAILED');
    const named = message.split('; ').map((sentence) => sentence.split(' ')[0]);
    assert.equal(named.join('; '), fields, message);
  }
  assert.deepEqual((await admin.listKeys({})).keys, []);
});

test('a name is given once', async (t) => {
  const { service, admin } = await startWithOperator(t);
  await admin.createKey(trial);
  await typedRefusal(admin.createKey(trial), 'VALIDATION_FAILED');
  await service.issuance.issueToken(tokenTerms('ledger'), tester);
  await typedRefusal(admin.createKey({ ...trial, name: 'ledger' }), 'VALIDATION_FAILED');
});

test('keys are listed oldest first, page by page, without secrets', async (t) => {
  const { admin } = await startWithOperator(t);
  const names = ['c', 'a', 'e', 'b', 'd'];
  const secrets: string[] = [];
  for (const name of names) secrets.push((await admin.createKey({ ...trial, name })).apiSecret);
  const listed: string[] = [];
  let pageToken = '';
  const sizes: number[] = [];
  do {
    const page = await admin.listKeys({ pageSize: 2, pageToken });
    const shown = JSON.stringify(page, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    assert.ok(secrets.every((secret) => !shown.includes(secret)));
    listed.push(...page.keys.map(({ caller }) => caller));
    sizes.push(page.keys.length);
    pageToken = page.nextPageToken;
  } while (pageToken !== '');
  assert.deepEqual(listed, names);
  assert.deepEqual(sizes, [2, 2, 1]);
  assert.equal((await admin.listKeys({ pageSize: 5 })).nextPageToken, '');
});

test('a page of keys that cannot be is refused', async (t) => {
  const { admin } = await startWithOperator(t);
  for (const request of [{ pageSize: -1 }, { pageSize: 101 }, { pageToken: 'x' }]) {
    await typedRefusal(admin.listKeys(request), 'VALIDATION_FAILED');
  }
});

test('suspending, resuming and revoking answer the key as it is then', async (t) => {
  const { admin } = await startWithOperator(t);
  const { key } = await admin.createKey(trial);
  assert.ok(key);
  const { keyId } = key;
  assert.deepEqual((await admin.suspendKey({ keyId })).key, { ...key, status: Key_Status.SUSPENDED });
  assert.deepEqual((await admin.suspendKey({ keyId })).key, { ...key, status: Key_Status.SUSPENDED });
  assert.deepEqual((await admin.resumeKey({ keyId })).key, key);
  assert.deepEqual((await admin.resumeKey({ keyId })).key, key);
  assert.deepEqual((await admin.revokeKey({ keyId })).key, { ...key, status: Key_Status.REVOKED });
  assert.deepEqual((await admin.revokeKey({ keyId })).key, { ...key, status: Key_Status.REVOKED });
});

test('suspending and resuming a platform answer it as it is then, and its keys tell it', async (t) => {
  const { admin } = await startWithOperator(t);
  const { key } = await admin.createKey(trial);
  await admin.rotateKey({ keyId: key?.keyId ?? '' });
  const toldByKeys = async () =>
    (await admin.listKeys({})).keys.map(({ status, platformStatus }) => [status, platformStatus]);
  const { ACTIVE, SUSPENDED } = Platform_Status;
  assert.equal(key?.platformStatus, ACTIVE);
  for (const [change, status] of [
    [admin.suspendPlatform, SUSPENDED],
    [admin.suspendPlatform, SUSPENDED],
    [admin.resumePlatform, ACTIVE],
    [admin.resumePlatform, ACTIVE],
  ] as const) {
    const { platform } = await change({ caller: 'gallery' });
    assert.deepEqual(
      [platform?.caller, platform?.tier, platform?.monthlyQuota, platform?.status],
      ['gallery', TRIAL, 1_000n, status],
    );
    assert.deepEqual(await toldByKeys(), [
      [Key_Status.ACTIVE, status],
      [Key_Status.ACTIVE, status],
    ]);
  }
});

test('what names no platform is neither suspended nor resumed', async (t) => {
  const { service, admin } = await startWithOperator(t);
  await service.issuance.issueToken(tokenTerms('ledger'), tester);
  const { key } = await admin.createKey(trial);
  for (const caller of ['', 'Gallery', 'ledger', key?.keyId ?? '']) {
    await typedRefusal(admin.suspendPlatform({ caller }), 'NOT_FOUND');
    await typedRefusal(admin.resumePlatform({ caller }), 'NOT_FOUND');
  }
});

test('an agreement is changed to what could be agreed anew, and what is left out of it stays', async (t) => {
  const { admin } = await startWithOperator(t);
  await admin.createKey(trial);
  const update = async (change: object) => {
    const { platform } = await admin.updatePlatform({ caller: 'gallery', ...change });
    assert.deepEqual((await admin.getPlatform({ caller: 'gallery' })).platform, platform);
    assert.equal((await admin.listKeys({})).keys[0]?.monthlyQuota, platform?.monthlyQuota);
    return [platform?.tier, platform?.monthlyQuota, platform?.filingCap];
  };
  assert.deepEqual(await update({ tier: STANDARD }), [STANDARD, 10_000n, undefined]);
  assert.deepEqual(await update({ filingCap: 500n }), [STANDARD, 10_000n, 500n]);
  assert.deepEqual(await update({ tier: ENTERPRISE, monthlyQuota: 7n }), [ENTERPRISE, 7n, 500n]);
  assert.deepEqual(await update({ monthlyQuota: 3n }), [ENTERPRISE, 3n, 500n]);
  assert.deepEqual(await update({ filingCap: 999_999n }), [ENTERPRISE, 3n, 999_999n]);
  assert.deepEqual(await update({ noFilingCap: true }), [ENTERPRISE, 3n, undefined]);
  assert.deepEqual(await update({ tier: ENTERPRISE }), [ENTERPRISE, 3n, undefined]);
  assert.deepEqual(await update({ unlimited: true }), [ENTERPRISE, undefined, undefined]);
  assert.deepEqual(await update({ tier: TRIAL }), [TRIAL, 1_000n, undefined]);
});

test('a change of an agreement that breaks a rule is refused by its field, as a new one is, and changes nothing', async (t) => {
  const { admin } = await startWithOperator(t);
  await admin.createKey(trial);
  const refusals: [change: object, message: RegExp][] = [
    [{}, /^tier is required if neither monthlyQuota nor filingCap changes/],
    [{ filingCap: 0n }, /^filingCap must be an integer from 1 to 999999/],
    [{ filingCap: 1_000_000n }, /^filingCap must be an integer from 1 to 999999/],
    [{ filingCap: 5n, noFilingCap: true }, /^filingCap cannot be both a number and none/],
    [{ tier: 9 }, /^tier must be one of TRIAL, STANDARD, ENTERPRISE/],
    [{ tier: ENTERPRISE }, /^monthlyQuota is required for ENTERPRISE/],
    [{ monthlyQuota: 5n }, /^monthlyQuota is fixed by the tier TRIAL/],
    [{ tier: STANDARD, unlimited: true }, /^monthlyQuota is fixed by the tier STANDARD/],
    [{ tier: ENTERPRISE, monthlyQuota: 0n }, /^monthlyQuota must be an integer from 1/],
    [{ tier: ENTERPRISE, monthlyQuota: 2n ** 53n }, /^monthlyQuota must be an integer from 1/],
    [{ tier: ENTERPRISE, monthlyQuota: 5n, unlimited: true }, /^monthlyQuota cannot be both/],
    [{ tier: STANDARD, reason: 'a\nb' }, /^reason must have no control characters/],
  ];
  for (const [change, message] of refusals) {
    const refused = await typedRefusal(
      admin.updatePlatform({ caller: 'gallery', ...change }),
      'VALIDATION_FAILED',
    );
    assert.match(refused.message, message);
  }
  const { platform } = await admin.getPlatform({ caller: 'gallery' });
  assert.deepEqual([platform?.tier, platform?.monthlyQuota], [TRIAL, 1_000n]);
  for (const caller of ['', 'Gallery']) {
    await typedRefusal(admin.updatePlatform({ caller, tier: STANDARD }), 'NOT_FOUND');
    await typedRefusal(admin.getPlatform({ caller }), 'NOT_FOUND');
  }
});

test('platforms and their usage are listed oldest first, page by page', async (t) => {
  const { service, admin } = await startWithOperator(t, { clock: createManualClock(noon) });
  const names = ['c', 'a', 'b'];
  for (const name of names) await admin.createKey({ ...trial, name });
  await service.issuance.issueToken(tokenTerms('ledger'), tester);
  await admin.suspendPlatform({ caller: 'a' });
  const pages = async <T extends { nextPageToken: string }>(list: (pageToken: string) => Promise<T>) => {
    const found: T[] = [];
    do found.push(await list(found.at(-1)?.nextPageToken ?? ''));
    while (found.at(-1)?.nextPageToken !== '');
    return found;
  };
  const listed = await pages((pageToken) => admin.listPlatforms({ pageSize: 2, pageToken }));
  assert.deepEqual(
    listed.map(({ platforms }) => platforms.map(({ caller }) => caller)),
    [['c', 'a'], ['b']],
  );
  const [, suspended] = listed[0]?.platforms ?? [];
  assert.deepEqual(suspended, (await admin.getPlatform({ caller: 'a' })).platform);
  const usages = await pages((pageToken) => admin.listUsage({ month: '2026-10', pageSize: 2, pageToken }));
  assert.deepEqual(
    usages.map(({ month, usages: found }) => [month, ...found.map(({ platform }) => platform?.caller)]),
    [
      ['2026-10', 'c', 'a'],
      ['2026-10', 'b'],
    ],
  );
  const [first = assert.fail()] = usages;
  assert.deepEqual(first.usages[1]?.platform, suspended);
  for (const request of [
    { month: '2026-13' },
    { pageSize: 101 },
    { month: '2026-11', pageSize: 2, pageToken: first.nextPageToken },
  ]) {
    await typedRefusal(admin.listUsage(request), 'VALIDATION_FAILED');
  }
  await typedRefusal(admin.listPlatforms({ pageToken: 'x' }), 'VALIDATION_FAILED');
});

test('a revoked key stays revoked', async (t) => {
  const { admin } = await startWithOperator(t);
  const { key } = await admin.createKey(trial);
  const keyId = key?.keyId ?? '';
  await admin.revokeKey({ keyId });
  await typedRefusal(admin.resumeKey({ keyId }), 'VALIDATION_FAILED');
  await typedRefusal(admin.suspendKey({ keyId }), 'VALIDATION_FAILED');
  await typedRefusal(admin.rotateKey({ keyId }), 'VALIDATION_FAILED');
  const { keys } = await admin.listKeys({});
  assert.deepEqual(
    keys.map(({ status }) => status),
    [Key_Status.REVOKED],
  );
});

test('what names no key is not found', async (t) => {
  const { admin } = await startWithOperator(t);
  const { key } = await admin.createKey(trial);
  for (const keyId of ['', 'key_unknown', key?.apiKey ?? '', 'gallery']) {
    await typedRefusal(admin.suspendKey({ keyId }), 'NOT_FOUND');
    await typedRefusal(admin.resumeKey({ keyId }), 'NOT_FOUND');
    await typedRefusal(admin.revokeKey({ keyId }), 'NOT_FOUND');
    await typedRefusal(admin.rotateKey({ keyId }), 'NOT_FOUND');
  }
});

test('rotation issues a further key and dates the end of the old one', async (t) => {
  const { admin } = await startWithOperator(t, { clock: createManualClock(noon) });
  const { key: old } = await admin.createKey(trial);
  const keyId = old?.keyId ?? '';
  const { key, apiSecret } = await admin.rotateKey({ keyId });
  assert.notEqual(key?.keyId, keyId);
  assert.notEqual(key?.apiKey, old?.apiKey);
  assert.match(apiSecret, /^sk_sandbox_/);
  assert.deepEqual([key?.caller, key?.tier, key?.expiresAt], ['gallery', TRIAL, '']);
  const { keys } = await admin.listKeys({});
  assert.equal(keys[0]?.expiresAt, '2026-11-22T12:00:00+00:00');
  await admin.rotateKey({ keyId, overlapSeconds: 60 });
  assert.equal((await admin.listKeys({})).keys[0]?.expiresAt, '2026-11-21T12:01:00+00:00');
  await admin.rotateKey({ keyId, overlapSeconds: 2_592_000 });
  assert.equal((await admin.listKeys({})).keys[0]?.expiresAt, '2026-11-21T12:01:00+00:00');
});

test('an overlap beyond its bounds is refused', async (t) => {
  const { admin } = await startWithOperator(t);
  const { key } = await admin.createKey(trial);
  const keyId = key?.keyId ?? '';
  for (const overlapSeconds of [-1, 2_592_001]) {
    const { message } = await typedRefusal(admin.rotateKey({ keyId, overlapSeconds }), 'VALIDATION_FAILED');
    assert.match(message, /^overlapSeconds .*2592000/);
  }
  assert.equal((await admin.listKeys({})).keys.length, 1);
  for (const overlapSeconds of [2_592_000, 0]) await admin.rotateKey({ keyId, overlapSeconds });
});

test('a key is shown as revoked from the end of its overlap on, and is not rotated any more', async (t) => {
  const clock = createManualClock(noon);
  const { admin } = await startWithOperator(t, { clock });
  const keyId = (await admin.createKey(trial)).key?.keyId ?? '';
  await admin.rotateKey({ keyId, overlapSeconds: 60 });
  const statuses = async () => (await admin.listKeys({})).keys.map(({ status }) => status);
  clock.advance(59_999);
  assert.deepEqual(await statuses(), [Key_Status.ACTIVE, Key_Status.ACTIVE]);
  clock.advance(1);
  assert.deepEqual(await statuses(), [Key_Status.REVOKED, Key_Status.ACTIVE]);
  assert.equal((await admin.suspendKey({ keyId })).key?.status, Key_Status.REVOKED);
  await typedRefusal(admin.rotateKey({ keyId }), 'VALIDATION_FAILED');
  assert.equal((await admin.listKeys({})).keys.length, 2);
});

test('usage counts the calls of a platform in a month of the business time zone', async (t) => {
  // Still November in UTC.
  const clock = createManualClock(Date.parse('2026-11-30T16:30:00Z'));
  const { service, admin } = await startWithOperator(t, {
    clock,
    env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' },
  });
  const { key, apiSecret } = await admin.createKey(trial);
  const credentials = { apiKey: key?.apiKey ?? '', apiSecret };
  const call = () =>
    send(service.publicUrl, credentials, {
      target: '/api/v1/provenance/AS-2026-000001',
      timestamp: String(Math.floor(clock.nowMs() / 1000)),
    });
  for (let count = 0; count < 3; count += 1) assert.equal((await call()).status, 404);
  const usage = await admin.getUsage({ caller: 'gallery' });
  assert.deepEqual(
    [usage.caller, usage.month, usage.calls, usage.monthlyQuota],
    ['gallery', '2026-12', 3n, 1_000n],
  );
  assert.equal((await admin.getUsage({ caller: 'gallery', month: '2026-12' })).calls, 3n);
  assert.equal((await admin.getUsage({ caller: 'gallery', month: '2026-11' })).calls, 0n);
  const of = async (request: object) => {
    const { month, usages } = await admin.listUsage(request);
    return [month, ...usages.map(({ platform, calls, remaining }) => [platform?.caller, calls, remaining])];
  };
  assert.deepEqual(await of({}), ['2026-12', ['gallery', 3n, 997n]]);
  assert.deepEqual(await of({ month: '2026-11' }), ['2026-11', ['gallery', 0n, 1_000n]]);
  await admin.updatePlatform({ caller: 'gallery', tier: ENTERPRISE, monthlyQuota: 2n });
  assert.deepEqual(await of({}), ['2026-12', ['gallery', 3n, 0n]]);
  await admin.updatePlatform({ caller: 'gallery', unlimited: true });
  assert.deepEqual(await of({}), ['2026-12', ['gallery', 3n, undefined]]);
});

test('an unlimited platform has usage without a quota', async (t) => {
  const { service, admin } = await startWithOperator(t);
  const { caller } = await service.platform();
  assert.equal((await admin.getUsage({ caller })).monthlyQuota, undefined);
});

test('usage of nobody, of an internal system, or of no month is refused', async (t) => {
  const { service, admin } = await startWithOperator(t);
  const { caller } = await service.platform();
  await service.issuance.issueToken(tokenTerms('ledger'), tester);
  for (const name of ['', 'nobody', 'ledger', caller.toUpperCase()]) {
    await typedRefusal(admin.getUsage({ caller: name }), 'NOT_FOUND');
  }
  for (const month of ['2026-13', '2026-00', '2026-1', '2026-11-21', 'november', ' 2026-11', '2026-11\n']) {
    await typedRefusal(admin.getUsage({ caller, month }), 'VALIDATION_FAILED');
  }
});

test('times are whole seconds in UTC', async (t) => {
  const { admin } = await startWithOperator(t);
  const { key } = await admin.createKey(trial);
  await admin.rotateKey({ keyId: key?.keyId ?? '' });
  for (const { createdAt, expiresAt } of (await admin.listKeys({})).keys) {
    assert.match(createdAt, timestamp);
    if (expiresAt !== '') assert.match(expiresAt, timestamp);
  }
});
