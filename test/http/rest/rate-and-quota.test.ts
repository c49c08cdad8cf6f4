import assert from 'node:assert/strict';
import { mock, test } from 'node:test';
import { Key_Tier } from '../../../gen/artseal/v1/admin_pb.ts';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { tester } from '../../support/audit-log.ts';
import { onBadDisk } from '../../support/bad-disk.ts';
import { askProvenance, type CallOptions, fileArtwork, openEscrow } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertRejected } from '../../support/rejected.ts';
import { startService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';

const startMs = Date.UTC(2026, 5, 10, 12);
const monthEndMs = Date.UTC(2026, 6, 1);
const clock = createManualClock(startMs);
const service = await startService(fileScope, { clock });
const ledger = openLedger(fileScope, service);

const now = () => ({ timestamp: String(Math.floor(clock.nowMs() / 1_000)) });
const file = (by: ApiCredentials, options: CallOptions = {}) =>
  fileArtwork(service, by, { ...now(), ...options });
const ask = (by: ApiCredentials, filingNo: string) => askProvenance(service, by, filingNo, now());
const secondsToMonthEnd = () => Math.ceil((monthEndMs - clock.nowMs()) / 1_000);
const limits = ({ headers }: RestAnswer) => ({
  policy: headers['ratelimit-policy'],
  standing: headers.ratelimit,
});

test('a TRIAL platform may send ten calls at once; the eleventh gets Retry-After', async () => {
  const trial = await service.platform('TRIAL');
  for (let call = 1; call <= 10; call += 1) {
    const answer = await file(trial);
    assert.equal(answer.status, 200);
    assert.deepEqual(limits(answer), {
      policy: '"qps";q=10;w=1, "monthly";q=1000;w=2592000',
      standing: `"qps";r=${10 - call};t=1, "monthly";r=${1_000 - call};t=${secondsToMonthEnd()}`,
    });
  }
  const before = ledger.holdings();
  const rejected = await file(trial);
  assertRejected(rejected, 429, 'RATE_LIMITED', /10 calls a second/);
  assert.equal(rejected.headers['retry-after'], '1');
  assert.match(String(rejected.headers.ratelimit), /^"qps";r=0;t=1, "monthly";r=990;t=\d+$/);
  assert.deepEqual(ledger.holdings(), before);
  assert.equal(ledger.calls(trial.caller), 10);
  clock.advance(Number(rejected.headers['retry-after']) * 1_000);
  assert.equal((await file(trial)).status, 200);
});

test('the rate does not follow the wall clock', async () => {
  const trial = await service.platform('TRIAL');
  for (let call = 0; call < 10; call += 1) await file(trial);
  const wallMs = clock.nowMs();
  for (const jumpMs of [3_600_000, -3_600_000]) {
    clock.setWall(wallMs + jumpMs);
    assertRejected(await file(trial), 429, 'RATE_LIMITED');
  }
  clock.setWall(wallMs);
});

test('the keys of a caller share its rate and its quota, and other callers have their own', async () => {
  const trial = await service.platform('TRIAL');
  const { key, apiSecret } = await service.issuance.rotateKey(trial.keyId, 86_400, tester);
  const second = { apiKey: key.apiKey, apiSecret };
  for (let call = 0; call < 5; call += 1) {
    await file(trial);
    await file(second);
  }
  for (const by of [trial, second]) {
    const rejected = await file(by);
    assertRejected(rejected, 429, 'RATE_LIMITED');
    assert.match(String(rejected.headers.ratelimit), /"monthly";r=990/);
  }
  assert.equal((await file(await service.platform('TRIAL'))).status, 200);
});

test('a call counts even if its operation fails, also with PAYMENT_PENDING', async () => {
  const platform = await service.platform('ENTERPRISE', 6);
  const { filingNo } = (await file(platform)).json;
  const declining = () => openEscrow(service, platform, filingNo, { buyerId: 'sim-decline' }, now());
  const losing = () => openEscrow(service, platform, filingNo, { buyerId: 'sim-lost-request' }, now());
  for (const [left, status, call] of [
    [4, 400, () => file(platform, { body: '{}' })],
    [3, 400, () => file(platform, { body: '{' })],
    [2, 404, () => ask(platform, 'none')],
    [1, 402, declining],
    [0, 503, losing],
  ] as const) {
    const answer = await call();
    assert.equal(answer.status, status, answer.text);
    assert.match(String(answer.headers.ratelimit), new RegExp(`"monthly";r=${left};`), answer.text);
    assert.equal(ledger.calls(platform.caller), 6 - left);
  }
  assertRejected(await ask(platform, filingNo), 429, 'QUOTA_EXCEEDED');
  assert.equal(ledger.calls(platform.caller), 6);
});

const [badDisk, disk] = await onBadDisk({ mock }, () => startService(fileScope));
const counted = openLedger(fileScope, badDisk);

for (const [what, kept, call, code, left] of [
  ['that stores nothing', 0, (listener, by) => fileArtwork(listener, by), 'UNAVAILABLE', 3],
  ['whose order is not stored', 0, openEscrow, 'UNAVAILABLE', 3],
  ['whose order is stored, but nothing that follows,', 1, openEscrow, 'PAYMENT_PENDING', 2],
] satisfies [string, number, typeof openEscrow, Reason, number][]) {
  test(`a call ${what} counts only if it was stored, and its response has the limits`, async (t) => {
    t.after(disk.heal);
    const platform = await badDisk.platform('ENTERPRISE', 5);
    await fileArtwork(badDisk, platform);
    const { filingNo } = (await fileArtwork(badDisk, platform)).json;

    disk.failCommits(kept);
    const lost = await call(badDisk, platform, filingNo);
    assertRejected(lost, 503, code);
    assert.match(
      String(lost.headers.ratelimit),
      new RegExp(`^"qps";r=\\d+;t=1, "monthly";r=${left};t=\\d+$`),
    );
    assert.match(String(lost.headers['ratelimit-policy']), /^"qps";q=200;w=1, "monthly";q=5;w=\d+$/);
    assert.ok(disk.failed() > 0);
    disk.heal();

    assert.equal(counted.calls(platform.caller), 5 - left);
    const next = await fileArtwork(badDisk, platform);
    assert.match(String(next.headers.ratelimit), new RegExp(`"monthly";r=${left - 1};`));
  });
}

test('a call that is rejected before its operation does not count, and its response has the limits', async () => {
  for (const [status, options] of [
    [404, { target: '/api/v1/nowhere' }],
    [405, { method: 'PUT' }],
    [415, { headers: { 'Content-Type': 'text/plain' } }],
    [415, { headers: { 'Content-Encoding': 'gzip' } }],
    [400, { headers: { 'Idempotency-Key': 'a b' } }],
  ] as const) {
    const platform = await service.platform('ENTERPRISE', 7);
    const request = { target: '/api/v1/filing', body: '{}', ...now(), ...options };
    const answer = await send(service.publicUrl, platform, request);
    assert.equal(answer.status, status);
    assert.equal(ledger.calls(platform.caller), 0);
    assert.match(String(answer.headers.ratelimit), /^"qps";r=199;t=1, "monthly";r=7;t=\d+$/);
    assert.match(String(answer.headers['ratelimit-policy']), /^"qps";q=200;w=1, "monthly";q=7;w=2592000$/);
  }
});

test('a replay and a reused key do not count, and their responses have the limits', async () => {
  const platform = await service.platform('ENTERPRISE', 2);
  const headers = { 'Idempotency-Key': 'k' };
  const first = await file(platform, { headers });
  assert.equal(first.status, 200);
  const other = await file(platform, { headers, body: '{}' });
  assertRejected(other, 422, 'IDEMPOTENCY_KEY_REUSED');
  const replay = await file(platform, { headers });
  assert.equal(replay.headers['idempotent-replayed'], 'true');
  for (const { headers } of [first, other, replay]) assert.match(String(headers.ratelimit), /"monthly";r=1;/);
  assert.equal(ledger.calls(platform.caller), 1);
  // Even if the quota is used up.
  assert.equal((await file(platform)).status, 200);
  assert.equal((await file(platform, { headers })).text, first.text);
  assertRejected(await file(platform, { headers, body: '{}' }), 422, 'IDEMPOTENCY_KEY_REUSED');
  assertRejected(await file(platform), 429, 'QUOTA_EXCEEDED');
});

test('a call that is rejected before authentication gets no limits', async () => {
  const platform = await service.platform();
  const answer = await file({ ...platform, apiSecret: 'wrong' });
  assertRejected(answer, 401, 'SIGNATURE_INVALID');
  assert.deepEqual(limits(answer), { policy: undefined, standing: undefined });
});

test('a changed agreement holds for the next call', async () => {
  const platform = await service.platform('ENTERPRISE', 1);
  const { admin } = await service.operator();
  assertRejected(await ask(platform, 'none'), 404, 'FILING_NOT_FOUND');
  assertRejected(await ask(platform, 'none'), 429, 'QUOTA_EXCEEDED');
  const update = (agreement: object) => admin.updatePlatform({ caller: platform.caller, ...agreement });
  await update({ monthlyQuota: 3n });
  const raised = await ask(platform, 'none');
  assertRejected(raised, 404, 'FILING_NOT_FOUND');
  assert.match(String(limits(raised).policy), /"monthly";q=3;/);
  assert.match(String(raised.headers.ratelimit), /"monthly";r=1;/);
  await update({ monthlyQuota: 2n });
  assertRejected(await ask(platform, 'none'), 429, 'QUOTA_EXCEEDED', /All 2 calls of /);
  await update({ unlimited: true });
  assert.equal(limits(await ask(platform, 'none')).policy, '"qps";q=200;w=1');
  await update({ tier: Key_Tier.STANDARD });
  assert.match(String(limits(await ask(platform, 'none')).policy), /^"qps";q=50;w=1, "monthly";q=10000;/);
});

/** The last test, because it moves the clock. */
test('a call beyond the quota is rejected until the month ends', async () => {
  const platform = await service.platform('ENTERPRISE', 3);
  for (let call = 0; call < 3; call += 1)
    assertRejected(await ask(platform, 'none'), 404, 'FILING_NOT_FOUND');
  const before = ledger.holdings();
  const rejected = await file(platform);
  assertRejected(rejected, 429, 'QUOTA_EXCEEDED', /3 calls of 2026-06/);
  assert.equal(rejected.headers['retry-after'], String(secondsToMonthEnd()));
  assert.match(String(rejected.headers.ratelimit), new RegExp(`"monthly";r=0;t=${secondsToMonthEnd()}$`));
  assert.deepEqual(ledger.holdings(), before);
  assert.equal(ledger.calls(platform.caller), 3);

  clock.leap(monthEndMs - clock.nowMs() - 1);
  const lastMoment = await file(platform);
  assertRejected(lastMoment, 429, 'QUOTA_EXCEEDED');
  assert.equal(lastMoment.headers['retry-after'], '1');
  clock.advance(1);
  const nextMonth = await file(platform);
  assert.equal(nextMonth.status, 200);
  assert.equal(limits(nextMonth).policy, '"qps";q=200;w=1, "monthly";q=3;w=2678400');
  assert.match(String(nextMonth.headers.ratelimit), /"monthly";r=2;t=2678400$/);
});
