import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { ReloadResponse_Part_Result } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { Webhook_Status } from '../../../gen/artseal/v1/webhook_pb.ts';
import { replaceLostSecrets } from '../../../src/api/services/maintenance-service.ts';
import { unavailable } from '../../../src/domain/reason.ts';
import { createKeyRing, parseMasterKeys } from '../../../src/keys/key-ring.ts';
import type { Execute } from '../../../src/store/store.ts';
import { acceptClock, painting, time } from '../../store/promises/fixtures.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { keysInFile, newKey } from '../../support/master-keys.ts';
import { type ServiceOptions, startService, type TestService } from '../../support/service.ts';
import { typedError } from '../../support/typed-clients.ts';

const noonMs = Date.parse('2026-11-21T12:00:00Z');
const dayS = 86_400;

/** A service with a manual clock in Shanghai, and the clients of an operator. */
async function started(t: TestContext, { env, ...options }: ServiceOptions = {}) {
  const clock = createManualClock(noonMs);
  const service = await startService(t, {
    clock,
    env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai', ...env },
    ...options,
  });
  const operator = await service.operator();
  /** The newest entries of an action. */
  const audited = async (action: string) =>
    (await operator.admin.listAuditLog({ pageSize: 100 })).entries.filter((entry) => entry.action === action);
  return { clock, service, audited, ...operator };
}

const keyed = (key: string) => ({ headers: { 'Idempotency-Key': key } });

/** test/cli/retention.test.ts has that no file keeps their texts. */
test('CountExpired and EraseExpired treat all old filings in portions', async (t) => {
  const { service, maintenance, audited, actor } = await started(t);
  const by = service.store.findKey((await service.platform()).apiKey) ?? assert.fail();
  const file = (timestamp: string) =>
    service.execute({ kind: 'FileArtwork', artwork: painting, at: time(timestamp), by });
  await acceptClock(service.store, time('2015-06-01T12:00:00+00:00'));
  await Promise.all(Array.from({ length: 520 }, () => file('2015-06-01T12:00:00+00:00')));
  await file('2016-06-01T12:00:00+00:00');
  await maintenance.acceptClock({});
  await file('2026-11-21T12:00:00+00:00');
  const year = (at: number, first: number, last: number) => ({
    ...{ year: at, filings: last - first + 1, records: last - first + 1 },
    firstFilingNo: `AS-${at}-${String(first).padStart(6, '0')}`,
    lastFilingNo: `AS-${at}-${String(last).padStart(6, '0')}`,
  });
  const plain = (years: readonly object[]) => years.map((one) => ({ ...one, $typeName: undefined }));
  const portions = [[year(2015, 1, 500)], [year(2015, 501, 520), year(2016, 1, 1)]].map(plain);

  const counted = await maintenance.countExpired({});
  const rest = await maintenance.countExpired({ pageToken: counted.nextPageToken });
  assert.deepEqual([plain(counted.years), plain(rest.years)], portions);
  assert.equal(rest.nextPageToken, '');
  // Five years before the newest filing, and a day.
  assert.equal(counted.recordedUpTo, '2021-11-20T20:00:00+08:00');
  for (const request of [{ pageToken: 'x' }, { pageToken: rest.recordedUpTo }])
    await typedError(maintenance.countExpired(request), 'VALIDATION_FAILED');
  const ofCount = { pageToken: counted.nextPageToken };
  await typedError(maintenance.eraseExpired(ofCount), 'VALIDATION_FAILED');

  const reason = 'yearly';
  const first = await maintenance.eraseExpired({ reason }, keyed('erase'));
  assert.deepEqual(plain(first.years), portions[0]);
  const replay = await maintenance.eraseExpired({ reason }, keyed('erase'));
  assert.deepEqual(replay.years, first.years);
  assert.notEqual(replay.nextPageToken, '');
  // Each token leads to the same rest, although the positions differ.
  const second = await maintenance.eraseExpired({ reason, pageToken: replay.nextPageToken });
  assert.deepEqual(plain(second.years), portions[1]);
  assert.deepEqual((await maintenance.eraseExpired({ reason, pageToken: first.nextPageToken })).years, []);
  assert.deepEqual((await maintenance.countExpired({})).years, []);
  const entries = (await audited('retention purge')).map((entry) => [
    entry.actor,
    entry.reason,
    entry.subject,
  ]);
  assert.deepEqual(entries, [
    [actor, reason, 'AS-2015-000501 to AS-2016-000001'],
    [actor, reason, 'AS-2015-000001 to AS-2015-000500'],
  ]);
});

/** test/process/sandbox-clock.slow.test.ts has holds, retries, retention and restarts. */
test('AdvanceClock ends months and evidence links, and advances once under the same key', async (t) => {
  const { clock, service, maintenance, admin } = await started(t);
  const { caller, ...platform } = await service.platform();
  const clients = await service.clients({ scopes: ['read', 'link'] });
  const file = (key: string) =>
    fileArtwork(service, platform, {
      timestamp: String(Math.floor(clock.nowMs() / 1_000)),
      headers: { 'Idempotency-Key': key },
    });
  const usage = async () => {
    const { month, calls } = await admin.getUsage({ caller });
    return [month, calls];
  };
  const first = await file('k');
  assert.equal(first.status, 200, first.text);
  const { filingNo } = first.json;
  const { path } = await clients.evidence.createEvidenceLink({ filingNo, expiresInSeconds: 86_400 });
  const links = async () => (await clients.evidence.listEvidenceLinks({ filingNo })).links.length;
  assert.deepEqual([await links(), ...(await usage())], [1, '2026-11', 1n]);

  for (const seconds of [0, -1, 315_360_001, -(2 ** 31)])
    await typedError(maintenance.advanceClock({ seconds }), 'VALIDATION_FAILED');
  const long = { seconds: 1, reason: 'x'.repeat(501) };
  await typedError(maintenance.advanceClock(long), 'VALIDATION_FAILED');
  await typedError(clients.maintenance.advanceClock({ seconds: 1 }), 'PERMISSION_DENIED');
  assert.equal((await maintenance.getClock({})).sandboxClock, '');

  const tenDays = { seconds: 864_000, reason: 'December' };
  const advanced = await maintenance.advanceClock(tenDays, keyed('advance'));
  assert.equal(advanced.sandboxClock, '2026-12-01T20:00:00+08:00');
  assert.deepEqual(await maintenance.advanceClock(tenDays, keyed('advance')), advanced);
  await Promise.all(Array.from({ length: 20 }, () => maintenance.advanceClock({ seconds: 1 })));
  const { clock: wall, sandboxClock, fault } = await maintenance.getClock({});
  const times = ['2026-11-21T20:00:00+08:00', '2026-12-01T20:00:20+08:00'];
  assert.deepEqual([wall, sandboxClock, fault], [...times, '']);

  assert.deepEqual([await links(), ...(await usage())], [0, '2026-12', 0n]);
  assert.equal((await fetch(`${service.publicUrl}${path}`)).status, 404);
  // A retry of the same call still gets its response, and a new one files at the real time.
  assert.equal((await file('k')).json.filingNo, filingNo);
  const next = await file('another');
  assert.deepEqual([next.status, next.json.timestamp], [200, first.json.timestamp], next.text);
  assert.deepEqual(await usage(), ['2026-12', 1n]);
});

/** test/cli/secrets.test.ts has the rotation of a master key, step by step. */
test('Reload and ReencryptSecrets run again under the same key, but not under that of another call', async (t) => {
  const { env, write } = keysInFile(t);
  const [k1, k2] = [newKey('k1'), newKey('k2')];
  write(k1);
  const { service, maintenance, audited, actor } = await started(t, { env });
  await service.platform();
  write(k2, k1);
  await maintenance.acceptClock({}, keyed('used'));
  await typedError(maintenance.reload({}, keyed('used')), 'IDEMPOTENCY_KEY_REUSED');
  assert.equal(service.keyRing.masterKeys.length, 1);
  await maintenance.reload({});
  await typedError(maintenance.reencryptSecrets({}, keyed('used')), 'IDEMPOTENCY_KEY_REUSED');
  const done = await maintenance.reencryptSecrets({ reason: 'yearly' }, keyed('reencrypt'));
  assert.ok(done.reencrypted > 0);
  const again = await maintenance.reencryptSecrets({ reason: 'yearly' }, keyed('reencrypt'));
  assert.deepEqual([again.reencrypted, again.before], [0, done.after]);
  const entries = (await audited('secrets re-encrypt')).map((entry) => [entry.actor, entry.reason]);
  assert.ok(entries.length > 0);
  for (const entry of entries) assert.deepEqual(entry, [actor, 'yearly']);
  write(k1);
  const [failed] = (await maintenance.reload({})).parts;
  assert.equal(failed?.result, ReloadResponse_Part_Result.FAILED);
});

/** The service's master key is lost, as for a folder that is opened without it. */
const lose = (service: TestService, name: string) =>
  service.keyRing.replace(createKeyRing(parseMasterKeys(newKey(name))));

test('RotateSecrets replaces what no master key opens, and the new secrets work when it returns', async (t) => {
  const { service, maintenance, webhooks, audited, actor } = await started(t);
  const old = await service.platform();
  const { webhook } = await webhooks.createWebhook({ url: 'https://ledger.example/hooks?token=1' });
  const { keys: oldKeys } = await maintenance.listLogKeys({});
  const nothing = await maintenance.rotateSecrets({});
  assert.deepEqual(
    [nothing.apiKeys, nothing.webhooks, nothing.logKeys, nothing.hasMore],
    [[], [], [], false],
  );
  lose(service, 'k2');
  const options = keyed('rotate');
  const {
    apiKeys,
    webhooks: changed,
    logKeys,
    hasMore,
  } = await maintenance.rotateSecrets({ reason: 'lost' }, options);
  const [key = assert.fail(), ...moreKeys] = apiKeys;
  assert.deepEqual([key.caller, key.replacedKeyId, moreKeys, hasMore], [old.caller, old.keyId, [], false]);
  const timestamp = String(noonMs / 1_000);
  assert.equal((await fileArtwork(service, key, { timestamp })).status, 200);
  assert.equal((await fileArtwork(service, old, { timestamp })).json.code, 'SIGNATURE_INVALID');
  const [one = assert.fail(), ...moreWebhooks] = changed;
  assert.deepEqual([one.webhookId, one.lostUrl], [webhook?.webhookId, 'https://ledger.example']);
  assert.match(one.secret, /^whsec_/);
  assert.deepEqual(moreWebhooks, []);
  const shown = await webhooks.getWebhook({ webhookId: one.webhookId });
  assert.equal(shown.webhook?.status, Webhook_Status.DISABLED);
  const { keys } = await maintenance.listLogKeys({});
  assert.deepEqual(
    logKeys.map(({ replacedVkey, vkey }) => [replacedVkey, vkey]),
    [[oldKeys[0]?.vkey, keys[0]?.vkey]],
  );
  assert.deepEqual(service.publication.verifierKeys(), [keys[0]?.vkey]);
  const again = await maintenance.rotateSecrets({ reason: 'lost' }, options);
  assert.deepEqual([again.apiKeys, again.webhooks, again.logKeys], [[], [], []]);
  for (const action of ['key rotate', 'evidence rotate-key'])
    assert.deepEqual(
      (await audited(action)).map((entry) => [entry.actor, entry.reason]),
      [[actor, 'lost']],
    );
});

test('RotateSecrets replaces 100 secrets in a call, and returns those before an error', async (t) => {
  const { service, maintenance } = await started(t);
  for (let nth = 0; nth < 103; nth += 1) await service.platform();
  lose(service, 'k2');
  let rotations = 0;
  const failing: Execute = (command) => {
    if (command.kind === 'RotateKey') rotations += 1;
    return rotations > 2 ? Promise.reject(unavailable('The disk is full.')) : service.execute(command);
  };
  const parts = { ...service, environment: 'sandbox', clock: createManualClock(noonMs) } as const;
  const by = { ...tester, atS: noonMs / 1_000 };
  const some = await replaceLostSecrets({ ...parts, execute: failing }, by);
  assert.deepEqual([some.apiKeys?.length, some.hasMore], [2, true]);
  await assert.rejects(replaceLostSecrets({ ...parts, execute: failing }, by), { reason: 'UNAVAILABLE' });
  const first = await maintenance.rotateSecrets({});
  assert.deepEqual([first.apiKeys.length, first.logKeys.length, first.hasMore], [100, 0, true]);
  const second = await maintenance.rotateSecrets({});
  assert.deepEqual([second.apiKeys.length, second.logKeys.length, second.hasMore], [1, 1, false]);
});

test('RotateLogKey adds a key that signs at once or later, and a replay adds no other', async (t) => {
  const { clock, service, maintenance, audited, actor } = await started(t);
  const [first = assert.fail()] = (await maintenance.listLogKeys({})).keys;
  assert.deepEqual([first.isSigning, first.endsAt], [true, '']);
  const request = { signsInSeconds: 7 * dayS, overlapSeconds: dayS, reason: 'yearly' };
  const added = await maintenance.rotateLogKey(request, keyed('rotate'));
  assert.deepEqual(
    [added.key?.isSigning, added.key?.signsFrom, added.key?.endsAt, added.othersEndAt],
    [false, '2026-11-28T20:00:00+08:00', '', '2026-11-29T20:00:00+08:00'],
  );
  assert.deepEqual(await maintenance.rotateLogKey(request, keyed('rotate')), added);
  const { message } = await typedError(
    maintenance.rotateLogKey({ signsInSeconds: -1, overlapSeconds: 366 * dayS + 1 }),
    'VALIDATION_FAILED',
  );
  assert.match(message, /^signsInSeconds must be 0 to 31622400; overlapSeconds must be 0 to 31622400/);
  const { keys } = await maintenance.listLogKeys({});
  assert.deepEqual(keys, [{ ...first, endsAt: added.othersEndAt }, added.key]);
  assert.deepEqual(service.publication.verifierKeys(), [first.vkey]);

  clock.setWall(Date.parse('2026-11-28T12:00:00Z'));
  const { keys: both } = await maintenance.listLogKeys({});
  assert.deepEqual(both, [{ ...added.key, isSigning: true }, keys[0]]);
  const byDefault = await maintenance.rotateLogKey({});
  assert.equal(byDefault.othersEndAt, '2026-12-28T20:00:00+08:00');
  assert.equal(service.publication.verifierKeys().length, 3);
  const alone = await maintenance.rotateLogKey({ overlapSeconds: 0, reason: 'leaked' });
  assert.deepEqual(service.publication.verifierKeys(), [alone.key?.vkey]);
  assert.deepEqual((await maintenance.listLogKeys({})).keys, [alone.key]);
  const entries = (await audited('evidence rotate-key')).map((entry) => [
    entry.actor,
    entry.reason,
    entry.subject,
  ]);
  assert.deepEqual(entries, [
    [actor, 'leaked', alone.key?.vkey],
    [actor, '', byDefault.key?.vkey],
    [actor, 'yearly', added.key?.vkey],
  ]);
});

test('RotateLogKey keeps to four keys that sign', async (t) => {
  const { maintenance } = await started(t);
  for (let keys = 1; keys < 4; keys += 1) await maintenance.rotateLogKey({});
  const { message } = await typedError(maintenance.rotateLogKey({}), 'VALIDATION_FAILED');
  assert.match(message, /^4 keys sign the evidence log/);
  assert.equal((await maintenance.listLogKeys({})).keys.length, 4);
});
