import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import { type Reason, reasons } from '../../../src/domain/reason.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { assertDocumented } from '../../support/openapi.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce, type RestAnswer, type SignedRequest } from '../../support/signed-request.ts';

const clock = createManualClock(Date.UTC(2026, 5, 10, 12));
const service = await startService(fileScope, { clock });
const ledger = openLedger(fileScope, service);
const stamp = (differenceS = 0) => String(Math.floor(clock.nowMs() / 1_000) + differenceS);

const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) } as const;
const tooLarge = { target: '/api/v1/filing', body: `${filing.body}${' '.repeat(65_536)}` } as const;
/** A malformed Idempotency-Key, and one that each platform has used for a filing. */
const badKey = { 'Idempotency-Key': 'a b' };
const usedKey = { 'Idempotency-Key': 'used' };
const escrow = (terms: object) => ({ target: '/api/v1/escrow', body: JSON.stringify(terms) });

/** Sends the bytes of a request, because HTTP client libraries reject some targets. The response must be documented. */
async function sendRaw(platform: ApiCredentials, request: SignedRequest): Promise<RestAnswer> {
  const { body = '', target } = request;
  const method = request.method ?? (request.body === undefined ? 'GET' : 'POST');
  const length = { Host: 'x', 'Content-Length': String(Buffer.byteLength(body)) };
  const headers = { ...length, ...headersOf(platform, { timestamp: stamp(), ...request }) };
  const answer = await rawAnswer(service.publicUrl, rawRequest(method, target, headers, body));
  assertDocumented(method, target, answer);
  return answer;
}

/** Platforms that fail a check. */
async function failingPlatforms() {
  const platform = await service.platform();
  const suspended = await service.platform();
  const usedUp = await service.platform('ENTERPRISE', 1);
  const hasty = await service.platform('TRIAL');
  const hastySuspended = await service.platform('TRIAL');
  const spent = newNonce();
  for (const each of [platform, suspended, usedUp, hasty]) {
    const first = { nonce: spent, timestamp: stamp(), headers: usedKey };
    assert.equal((await fileArtwork(service, each, first)).status, 200);
  }
  await service.execute({ kind: 'SetKeyStatus', by: tester, keyId: suspended.keyId, status: 'SUSPENDED' });
  for (let call = 1; call < 10; call += 1) await fileArtwork(service, hasty, { timestamp: stamp() });
  for (let call = 0; call < 10; call += 1) await fileArtwork(service, hastySuspended, { timestamp: stamp() });
  await service.execute({
    kind: 'SetKeyStatus',
    by: tester,
    keyId: hastySuspended.keyId,
    status: 'SUSPENDED',
  });
  return { platform, suspended, usedUp, hasty, hastySuspended, spent };
}

const { platform, suspended, usedUp, hasty, hastySuspended, spent } = await failingPlatforms();
const own = (await sendRaw(platform, filing)).json.filingNo;
const foreign = (await sendRaw(await service.platform(), filing)).json.filingNo;

/** A request that breaks one check or two, and the error that it gets. */
type Case = readonly [what: string, by: ApiCredentials, request: SignedRequest, code: Reason];

const badTarget = { ...filing, target: '/api/v1/../v1/filing' };
const unknownRoute = { target: '/api/v1/nowhere' };
const wrongMethod = { ...filing, method: 'PUT' };
const notJson = { ...filing, body: '{' };
const noNonce = { 'X-Nonce': undefined };
const textType = { 'Content-Type': 'text/plain' };
const old = stamp(-1_000);
const forged = { ...filing, signature: '0'.repeat(64) };
const withKey = (headers: SignedRequest['headers'], request: SignedRequest = filing) => ({
  ...request,
  ...(headers && { headers }),
});

/** Each request breaks two checks and gets the error of the first one. */
const pairs: readonly Case[] = [
  ['target, headers', platform, { ...badTarget, headers: noNonce }, 'BAD_REQUEST_TARGET'],
  ['headers, timestamp', platform, { ...filing, timestamp: old, headers: noNonce }, 'AUTH_HEADER_MISSING'],
  ['headers, timestamp', platform, { ...filing, timestamp: old, signature: 'x' }, 'AUTH_HEADER_INVALID'],
  ['timestamp, body size', platform, { ...tooLarge, timestamp: old }, 'TIMESTAMP_EXPIRED'],
  ['body size, signature', platform, { ...forged, ...tooLarge }, 'BODY_TOO_LARGE'],
  ['signature, key status', suspended, forged, 'SIGNATURE_INVALID'],
  ['key status, nonce', suspended, { ...filing, nonce: spent }, 'KEY_SUSPENDED'],
  ['key status, rate', hastySuspended, filing, 'KEY_SUSPENDED'],
  ['rate, nonce', hasty, { ...filing, nonce: spent }, 'RATE_LIMITED'],
  ['nonce, route', platform, { ...unknownRoute, nonce: spent }, 'NONCE_REUSED'],
  ['nonce, method', platform, { ...wrongMethod, nonce: spent }, 'NONCE_REUSED'],
  ['nonce, content type', platform, { ...filing, headers: textType, nonce: spent }, 'NONCE_REUSED'],
  ['route, content type', platform, withKey(textType, { ...unknownRoute, body: '{}' }), 'NOT_FOUND'],
  ['method, content type', platform, withKey(textType, wrongMethod), 'METHOD_NOT_ALLOWED'],
  ['route, Idempotency-Key', platform, withKey(badKey, unknownRoute), 'NOT_FOUND'],
  ['method, Idempotency-Key', platform, withKey(badKey, wrongMethod), 'METHOD_NOT_ALLOWED'],
  ['type, Idempotency-Key', platform, withKey({ ...badKey, ...textType }), 'UNSUPPORTED_MEDIA_TYPE'],
  ['Idempotency-Key, quota', usedUp, withKey(badKey), 'IDEMPOTENCY_KEY_INVALID'],
  ['Idempotency-Key, JSON', platform, withKey(badKey, notJson), 'IDEMPOTENCY_KEY_INVALID'],
  ['reused key, quota', usedUp, withKey(usedKey, { ...filing, body: '{}' }), 'IDEMPOTENCY_KEY_REUSED'],
  ['reused key, JSON', usedUp, withKey(usedKey, notJson), 'IDEMPOTENCY_KEY_REUSED'],
  ['route, quota', usedUp, unknownRoute, 'NOT_FOUND'],
  ['content type, quota', usedUp, withKey(textType), 'UNSUPPORTED_MEDIA_TYPE'],
  ['quota, JSON', usedUp, notJson, 'QUOTA_EXCEEDED'],
  ['quota, query', usedUp, { target: '/api/v1/provenance/x?a=1' }, 'QUOTA_EXCEEDED'],
  ['JSON, query', platform, { target: '/api/v1/filing?a=1', body: '{' }, 'INVALID_JSON'],
  ['fields, operation', platform, escrow({ ...escrowTerms('none'), amount: 0 }), 'VALIDATION_FAILED'],
];

for (const [what, by, request, code] of pairs) {
  test(`checks run in this order: ${what} (${code})`, async () => {
    const before = ledger.holdings();
    assertRejected(await sendRaw(by, request), reasons[code].http, code);
    assert.deepEqual(ledger.holdings(), before);
  });
}

test('a call that is rejected before admission stores nothing, and its bytes can be sent again', async () => {
  const trial = await service.platform('TRIAL');
  for (let call = 0; call < 10; call += 1) await fileArtwork(service, trial, { timestamp: stamp() });
  const sent = { ...filing, nonce: newNonce(), timestamp: stamp() };
  const log = () => hash('sha256', readFileSync(join(service.dataDir, 'artseal.db-wal')));
  const written = () => ({ nonces: ledger.nonces(), calls: ledger.calls(trial.caller), log: log() });
  const before = written();
  for (let call = 0; call < 20; call += 1) {
    assertRejected(await sendRaw(trial, sent), 429, 'RATE_LIMITED');
    assertRejected(await sendRaw(suspended, sent), 403, 'KEY_SUSPENDED');
    assertRejected(
      await sendRaw(suspended, { ...sent, signature: forged.signature }),
      401,
      'SIGNATURE_INVALID',
    );
  }
  assert.deepEqual(written(), before);
  clock.advance(1_000);
  assert.equal((await sendRaw(trial, sent)).status, 200);
  assertRejected(await sendRaw(trial, sent), 401, 'NONCE_REUSED');
  assert.notEqual(log(), before.log);
  await service.execute({ kind: 'SetKeyStatus', by: tester, keyId: suspended.keyId, status: 'ACTIVE' });
  assert.equal((await sendRaw(suspended, sent)).status, 200);
  await service.execute({ kind: 'SetKeyStatus', by: tester, keyId: suspended.keyId, status: 'SUSPENDED' });
});

const unknownFiling = { target: '/api/v1/provenance/none' };
const declining = { ...escrowTerms(own), buyerId: 'sim-decline' };
const unreachable = { ...escrowTerms(own), buyerId: 'sim-lost-request' };

const afterNonce: readonly Case[] = [
  ['the route', platform, unknownRoute, 'NOT_FOUND'],
  ['the method', platform, wrongMethod, 'METHOD_NOT_ALLOWED'],
  ['the content type', platform, withKey(textType), 'UNSUPPORTED_MEDIA_TYPE'],
  ['the form of an Idempotency-Key', platform, withKey(badKey), 'IDEMPOTENCY_KEY_INVALID'],
  ['a reused key', platform, withKey(usedKey, { ...filing, body: '{}' }), 'IDEMPOTENCY_KEY_REUSED'],
  ['the quota', usedUp, filing, 'QUOTA_EXCEEDED'],
  ['the body', platform, notJson, 'INVALID_JSON'],
  ['a field', platform, { ...filing, body: '{}' }, 'VALIDATION_FAILED'],
  ['an unknown filing', platform, unknownFiling, 'FILING_NOT_FOUND'],
  ["another platform's filing", platform, escrow(escrowTerms(foreign)), 'PERMISSION_DENIED'],
  ['a provider that declines', platform, escrow(declining), 'PAYMENT_DECLINED'],
  ['a provider that cannot be reached', platform, escrow(unreachable), 'PAYMENT_PENDING'],
];

for (const [what, by, request, code] of afterNonce) {
  test(`an error consumes the nonce: ${what}`, async () => {
    const sent = { ...request, nonce: newNonce(), timestamp: stamp() };
    assertRejected(await sendRaw(by, sent), reasons[code].http, code);
    assertRejected(await sendRaw(by, sent), 401, 'NONCE_REUSED');
  });
}
