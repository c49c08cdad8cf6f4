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
import { assertRefused } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce, type RestAnswer, type SignedRequest } from '../../support/signed-request.ts';

const clock = createManualClock(Date.UTC(2026, 5, 10, 12));
const service = await startService(fileScope, { clock });
const ledger = openLedger(fileScope, service);
const stamp = (differenceS = 0) => String(Math.floor(clock.nowMs() / 1_000) + differenceS);

const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) } as const;
const tooLarge = { target: '/api/v1/filing', body: `${filing.body}${' '.repeat(65_536)}` } as const;
/** A malformed key, and one that each platform has used for a filing. */
const badKey = { 'Idempotency-Key': 'a b' };
const usedKey = { 'Idempotency-Key': 'used' };
const wrongSignature = '0'.repeat(64);

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
async function platformsInTrouble() {
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

const { platform, suspended, usedUp, hasty, hastySuspended, spent } = await platformsInTrouble();
const own = (await sendRaw(platform, filing)).json.filingNo;
const foreign = (await sendRaw(await service.platform(), filing)).json.filingNo;

type Case = readonly [what: string, by: ApiCredentials, request: SignedRequest, code: Reason];

/** Requests that break two checks, and the error of the first one. */
const pairs: readonly Case[] = [
  [
    'a bad target before a missing header',
    platform,
    { ...filing, target: '/api//v1/filing', headers: { 'X-Nonce': undefined } },
    'BAD_REQUEST_TARGET',
  ],
  [
    'a missing header before an old timestamp',
    platform,
    { ...filing, timestamp: stamp(-1_000), headers: { 'X-Nonce': undefined } },
    'AUTH_HEADER_MISSING',
  ],
  [
    'a malformed header before an old timestamp',
    platform,
    { ...filing, timestamp: stamp(-1_000), signature: 'short' },
    'AUTH_HEADER_INVALID',
  ],
  [
    'an old timestamp before a body that is too large',
    platform,
    { ...tooLarge, timestamp: stamp(-1_000) },
    'TIMESTAMP_EXPIRED',
  ],
  [
    'a body that is too large before a wrong signature',
    platform,
    { ...tooLarge, signature: wrongSignature },
    'BODY_TOO_LARGE',
  ],
  [
    'a wrong signature before a suspended key',
    suspended,
    { ...filing, signature: wrongSignature },
    'SIGNATURE_INVALID',
  ],
  ['a suspended key before a spent nonce', suspended, { ...filing, nonce: spent }, 'KEY_SUSPENDED'],
  ['a suspended key before a used-up rate', hastySuspended, filing, 'KEY_SUSPENDED'],
  ['a used-up rate before a spent nonce', hasty, { ...filing, nonce: spent }, 'RATE_LIMITED'],
  [
    'a spent nonce before an unknown route',
    platform,
    { target: '/api/v1/nowhere', nonce: spent },
    'NONCE_REUSED',
  ],
  [
    'a spent nonce before a wrong method',
    platform,
    { ...filing, method: 'PUT', nonce: spent },
    'NONCE_REUSED',
  ],
  [
    'a spent nonce before a wrong content type',
    platform,
    { ...filing, headers: { 'Content-Type': 'text/plain' }, nonce: spent },
    'NONCE_REUSED',
  ],
  [
    'an unknown route before a wrong content type',
    platform,
    { ...filing, target: '/api/v1/nowhere', headers: { 'Content-Type': 'text/plain' } },
    'NOT_FOUND',
  ],
  [
    'a wrong method before a wrong content type',
    platform,
    { ...filing, method: 'PUT', headers: { 'Content-Type': 'text/plain' } },
    'METHOD_NOT_ALLOWED',
  ],
  [
    'an unknown route before an Idempotency-Key of the wrong form',
    platform,
    { ...filing, target: '/api/v1/nowhere', headers: badKey },
    'NOT_FOUND',
  ],
  [
    'a wrong method before an Idempotency-Key of the wrong form',
    platform,
    { ...filing, method: 'PUT', headers: badKey },
    'METHOD_NOT_ALLOWED',
  ],
  [
    'a wrong content type before an Idempotency-Key of the wrong form',
    platform,
    { ...filing, headers: { ...badKey, 'Content-Type': 'text/plain' } },
    'UNSUPPORTED_MEDIA_TYPE',
  ],
  [
    'an Idempotency-Key of the wrong form before a used-up quota',
    usedUp,
    { ...filing, headers: badKey },
    'IDEMPOTENCY_KEY_INVALID',
  ],
  [
    'an Idempotency-Key of the wrong form before a body that is not JSON',
    platform,
    { ...filing, body: '{', headers: badKey },
    'IDEMPOTENCY_KEY_INVALID',
  ],
  [
    'a key of another request before a used-up quota',
    usedUp,
    { ...filing, body: '{}', headers: usedKey },
    'IDEMPOTENCY_KEY_REUSED',
  ],
  [
    'a key of another request before a body that is not JSON',
    usedUp,
    { ...filing, body: '{', headers: usedKey },
    'IDEMPOTENCY_KEY_REUSED',
  ],
  ['an unknown route before a used-up quota', usedUp, { target: '/api/v1/nowhere' }, 'NOT_FOUND'],
  [
    'a wrong content type before a used-up quota',
    usedUp,
    { ...filing, headers: { 'Content-Type': 'text/plain' } },
    'UNSUPPORTED_MEDIA_TYPE',
  ],
  ['a used-up quota before a body that is not JSON', usedUp, { ...filing, body: '{' }, 'QUOTA_EXCEEDED'],
  [
    'a used-up quota before an unknown query parameter',
    usedUp,
    { target: '/api/v1/provenance/x?a=1' },
    'QUOTA_EXCEEDED',
  ],
  [
    'a body that is not JSON before an unknown query parameter',
    platform,
    { target: '/api/v1/filing?a=1', body: '{' },
    'INVALID_JSON',
  ],
  [
    'a wrong field before a filing that is not there',
    platform,
    { target: '/api/v1/escrow', body: JSON.stringify({ ...escrowTerms('none'), amount: 0 }) },
    'VALIDATION_FAILED',
  ],
];

for (const [what, by, request, code] of pairs) {
  test(`the order of checks: ${what}`, async () => {
    const before = ledger.holdings();
    assertRefused(await sendRaw(by, request), reasons[code].http, code);
    assert.deepEqual(ledger.holdings(), before);
  });
}

const beforeNonce: readonly (readonly [what: string, request: SignedRequest])[] = [
  ['a bad target', { ...filing, target: '/api/v1/../v1/filing' }],
  ['an old timestamp', { ...filing, timestamp: stamp(-1_000) }],
  ['a body that is too large', tooLarge],
  ['a wrong signature', { ...filing, signature: wrongSignature }],
];

test('a call that is rejected before admission stores nothing, and its bytes can be sent again', async () => {
  const trial = await service.platform('TRIAL');
  for (let call = 0; call < 10; call += 1) await fileArtwork(service, trial, { timestamp: stamp() });
  const sent = { ...filing, nonce: newNonce(), timestamp: stamp() };
  const log = () => hash('sha256', readFileSync(join(service.dataDir, 'artseal.db-wal')));
  const written = () => ({ nonces: ledger.nonces(), calls: ledger.calls(trial.caller), log: log() });
  const before = written();
  for (let call = 0; call < 20; call += 1) {
    assertRefused(await sendRaw(trial, sent), 429, 'RATE_LIMITED');
    assertRefused(await sendRaw(suspended, sent), 403, 'KEY_SUSPENDED');
    assertRefused(await sendRaw(suspended, { ...sent, signature: wrongSignature }), 401, 'SIGNATURE_INVALID');
  }
  assert.deepEqual(written(), before);
  clock.advance(1_000);
  assert.equal((await sendRaw(trial, sent)).status, 200);
  assertRefused(await sendRaw(trial, sent), 401, 'NONCE_REUSED');
  assert.notEqual(log(), before.log);
  await service.execute({ kind: 'SetKeyStatus', by: tester, keyId: suspended.keyId, status: 'ACTIVE' });
  assert.equal((await sendRaw(suspended, sent)).status, 200);
  await service.execute({ kind: 'SetKeyStatus', by: tester, keyId: suspended.keyId, status: 'SUSPENDED' });
});

for (const [what, request] of beforeNonce) {
  test(`a nonce is not used up by ${what}`, async () => {
    const nonce = newNonce();
    assert.notEqual((await sendRaw(platform, { ...request, nonce })).status, 200);
    assert.equal((await sendRaw(platform, { ...filing, nonce })).status, 200);
  });
}

const escrow = (terms: object) => ({ target: '/api/v1/escrow', body: JSON.stringify(terms) });

const afterNonce: readonly Case[] = [
  ['the route', platform, { target: '/api/v1/nowhere' }, 'NOT_FOUND'],
  ['the method', platform, { ...filing, method: 'PUT' }, 'METHOD_NOT_ALLOWED'],
  [
    'the content type',
    platform,
    { ...filing, headers: { 'Content-Type': 'text/plain' } },
    'UNSUPPORTED_MEDIA_TYPE',
  ],
  [
    'an Idempotency-Key of the wrong form',
    platform,
    { ...filing, headers: badKey },
    'IDEMPOTENCY_KEY_INVALID',
  ],
  [
    'a key of another request',
    platform,
    { ...filing, body: '{}', headers: usedKey },
    'IDEMPOTENCY_KEY_REUSED',
  ],
  ['the quota', usedUp, filing, 'QUOTA_EXCEEDED'],
  ['the body', platform, { ...filing, body: '{' }, 'INVALID_JSON'],
  ['a field', platform, { ...filing, body: '{}' }, 'VALIDATION_FAILED'],
  ['the operation: no such filing', platform, { target: '/api/v1/provenance/none' }, 'FILING_NOT_FOUND'],
  [
    'the operation: a filing of another platform',
    platform,
    escrow(escrowTerms(foreign)),
    'PERMISSION_DENIED',
  ],
  [
    'a payment provider that declines',
    platform,
    escrow({ ...escrowTerms(own), buyerId: 'sim-decline' }),
    'PAYMENT_DECLINED',
  ],
  [
    'a payment provider that cannot be reached',
    platform,
    escrow({ ...escrowTerms(own), buyerId: 'sim-lost-request' }),
    'PAYMENT_PENDING',
  ],
];

for (const [what, by, request, code] of afterNonce) {
  test(`a nonce stays used after an error: ${what}`, async () => {
    const sent = { ...request, nonce: newNonce(), timestamp: stamp() };
    assertRefused(await sendRaw(by, sent), reasons[code].http, code);
    assertRefused(await sendRaw(by, sent), 401, 'NONCE_REUSED');
  });
}
