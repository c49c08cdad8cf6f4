import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import type { ApiCredentials } from '../../../src/client/sign.ts';
import type { Reason } from '../../../src/domain/reason.ts';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRefused } from '../../support/rejected.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce, type SignedRequest } from '../../support/signed-request.ts';

const clock = createManualClock(Date.UTC(2026, 5, 10, 12));
const service = await startService(fileScope, { clock });
const ledger = openLedger(fileScope, service);
const stamp = (differenceS = 0) => String(Math.floor(clock.nowMs() / 1_000) + differenceS);

const filing = { target: '/api/v1/filing', body: JSON.stringify(artwork) } as const;
const tooLarge = { target: '/api/v1/filing', body: `${filing.body}${' '.repeat(65_536)}` } as const;
/** A key of the wrong form, and one that stands for a filing of each platform. */
const badKey = { 'Idempotency-Key': 'a b' };
const usedKey = { 'Idempotency-Key': 'used' };
const wrongSignature = '0'.repeat(64);

/** Sends the bytes of a request, whose target may be one that no client library would send. */
function sendRaw(platform: ApiCredentials, request: SignedRequest) {
  const { body = '', target } = request;
  const method = request.method ?? (request.body === undefined ? 'GET' : 'POST');
  const length = { Host: 'x', 'Content-Length': String(Buffer.byteLength(body)) };
  const headers = { ...length, ...headersOf(platform, { timestamp: stamp(), ...request }) };
  return rawAnswer(service.publicUrl, rawRequest(method, target, headers, body));
}

/** Platforms in the states that break a check. */
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

interface Pair {
  readonly what: string;
  readonly by: ApiCredentials;
  readonly request: SignedRequest;
  readonly status: number;
  readonly code: Reason;
}

const pairs: readonly Pair[] = [
  {
    what: 'a bad target before a missing header',
    by: platform,
    request: { ...filing, target: '/api//v1/filing', headers: { 'X-Nonce': undefined } },
    status: 400,
    code: 'BAD_REQUEST_TARGET',
  },
  {
    what: 'a missing header before an old timestamp',
    by: platform,
    request: { ...filing, timestamp: stamp(-1_000), headers: { 'X-Nonce': undefined } },
    status: 401,
    code: 'AUTH_HEADER_MISSING',
  },
  {
    what: 'a malformed header before an old timestamp',
    by: platform,
    request: { ...filing, timestamp: stamp(-1_000), signature: 'short' },
    status: 401,
    code: 'AUTH_HEADER_INVALID',
  },
  {
    what: 'an old timestamp before a body that is too large',
    by: platform,
    request: { ...tooLarge, timestamp: stamp(-1_000) },
    status: 401,
    code: 'TIMESTAMP_EXPIRED',
  },
  {
    what: 'a body that is too large before a wrong signature',
    by: platform,
    request: { ...tooLarge, signature: wrongSignature },
    status: 413,
    code: 'BODY_TOO_LARGE',
  },
  {
    what: 'a wrong signature before a suspended key',
    by: suspended,
    request: { ...filing, signature: wrongSignature },
    status: 401,
    code: 'SIGNATURE_INVALID',
  },
  {
    what: 'a suspended key before a spent nonce',
    by: suspended,
    request: { ...filing, nonce: spent },
    status: 403,
    code: 'KEY_SUSPENDED',
  },
  {
    what: 'a suspended key before a used-up rate',
    by: hastySuspended,
    request: filing,
    status: 403,
    code: 'KEY_SUSPENDED',
  },
  {
    what: 'a used-up rate before a spent nonce',
    by: hasty,
    request: { ...filing, nonce: spent },
    status: 429,
    code: 'RATE_LIMITED',
  },
  {
    what: 'a spent nonce before an unknown route',
    by: platform,
    request: { target: '/api/v1/nowhere', nonce: spent },
    status: 401,
    code: 'NONCE_REUSED',
  },
  {
    what: 'a spent nonce before a wrong method',
    by: platform,
    request: { ...filing, method: 'PUT', nonce: spent },
    status: 401,
    code: 'NONCE_REUSED',
  },
  {
    what: 'a spent nonce before a wrong content type',
    by: platform,
    request: { ...filing, headers: { 'Content-Type': 'text/plain' }, nonce: spent },
    status: 401,
    code: 'NONCE_REUSED',
  },
  {
    what: 'an unknown route before a wrong content type',
    by: platform,
    request: { ...filing, target: '/api/v1/nowhere', headers: { 'Content-Type': 'text/plain' } },
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    what: 'a wrong method before a wrong content type',
    by: platform,
    request: { ...filing, method: 'PUT', headers: { 'Content-Type': 'text/plain' } },
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
  },
  {
    what: 'an unknown route before an Idempotency-Key of the wrong form',
    by: platform,
    request: { ...filing, target: '/api/v1/nowhere', headers: badKey },
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    what: 'a wrong method before an Idempotency-Key of the wrong form',
    by: platform,
    request: { ...filing, method: 'PUT', headers: badKey },
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
  },
  {
    what: 'a wrong content type before an Idempotency-Key of the wrong form',
    by: platform,
    request: { ...filing, headers: { ...badKey, 'Content-Type': 'text/plain' } },
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
  {
    what: 'an Idempotency-Key of the wrong form before a used-up quota',
    by: usedUp,
    request: { ...filing, headers: badKey },
    status: 400,
    code: 'IDEMPOTENCY_KEY_INVALID',
  },
  {
    what: 'an Idempotency-Key of the wrong form before a body that is not JSON',
    by: platform,
    request: { ...filing, body: '{', headers: badKey },
    status: 400,
    code: 'IDEMPOTENCY_KEY_INVALID',
  },
  {
    what: 'a key of another request before a used-up quota',
    by: usedUp,
    request: { ...filing, body: '{}', headers: usedKey },
    status: 422,
    code: 'IDEMPOTENCY_KEY_REUSED',
  },
  {
    what: 'a key of another request before a body that is not JSON',
    by: usedUp,
    request: { ...filing, body: '{', headers: usedKey },
    status: 422,
    code: 'IDEMPOTENCY_KEY_REUSED',
  },
  {
    what: 'an unknown route before a used-up quota',
    by: usedUp,
    request: { target: '/api/v1/nowhere' },
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    what: 'a wrong content type before a used-up quota',
    by: usedUp,
    request: { ...filing, headers: { 'Content-Type': 'text/plain' } },
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
  {
    what: 'a used-up quota before a body that is not JSON',
    by: usedUp,
    request: { ...filing, body: '{' },
    status: 429,
    code: 'QUOTA_EXCEEDED',
  },
  {
    what: 'a used-up quota before an unknown query parameter',
    by: usedUp,
    request: { target: '/api/v1/provenance/x?a=1' },
    status: 429,
    code: 'QUOTA_EXCEEDED',
  },
  {
    what: 'a body that is not JSON before an unknown query parameter',
    by: platform,
    request: { target: '/api/v1/filing?a=1', body: '{' },
    status: 400,
    code: 'INVALID_JSON',
  },
  {
    what: 'a wrong field before a filing that is not there',
    by: platform,
    request: { target: '/api/v1/escrow', body: JSON.stringify({ ...escrowTerms('none'), amount: 0 }) },
    status: 400,
    code: 'VALIDATION_FAILED',
  },
];

for (const { what, by, request, status, code } of pairs) {
  test(`the order of checks: ${what}`, async () => {
    const before = ledger.holdings();
    assertRefused(await sendRaw(by, request), status, code);
    assert.deepEqual(ledger.holdings(), before);
  });
}

const beforeNonce: readonly (readonly [what: string, request: SignedRequest])[] = [
  ['a bad target', { ...filing, target: '/api/v1/../v1/filing' }],
  ['an old timestamp', { ...filing, timestamp: stamp(-1_000) }],
  ['a body that is too large', tooLarge],
  ['a wrong signature', { ...filing, signature: wrongSignature }],
];

test('what is refused before admission is written down nowhere, and its bytes may be sent again', async () => {
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
  test(`the nonce is not spent by ${what}`, async () => {
    const nonce = newNonce();
    assert.notEqual((await sendRaw(platform, { ...request, nonce })).status, 200);
    assert.equal((await sendRaw(platform, { ...filing, nonce })).status, 200);
  });
}

const escrow = (terms: object) => ({ target: '/api/v1/escrow', body: JSON.stringify(terms) });

const afterNonce: readonly Pair[] = [
  {
    what: 'the route',
    by: platform,
    request: { target: '/api/v1/nowhere' },
    status: 404,
    code: 'NOT_FOUND',
  },
  {
    what: 'the method',
    by: platform,
    request: { ...filing, method: 'PUT' },
    status: 405,
    code: 'METHOD_NOT_ALLOWED',
  },
  {
    what: 'the content type',
    by: platform,
    request: { ...filing, headers: { 'Content-Type': 'text/plain' } },
    status: 415,
    code: 'UNSUPPORTED_MEDIA_TYPE',
  },
  {
    what: 'an Idempotency-Key of the wrong form',
    by: platform,
    request: { ...filing, headers: badKey },
    status: 400,
    code: 'IDEMPOTENCY_KEY_INVALID',
  },
  {
    what: 'a key of another request',
    by: platform,
    request: { ...filing, body: '{}', headers: usedKey },
    status: 422,
    code: 'IDEMPOTENCY_KEY_REUSED',
  },
  { what: 'the quota', by: usedUp, request: filing, status: 429, code: 'QUOTA_EXCEEDED' },
  { what: 'the body', by: platform, request: { ...filing, body: '{' }, status: 400, code: 'INVALID_JSON' },
  {
    what: 'a field',
    by: platform,
    request: { ...filing, body: '{}' },
    status: 400,
    code: 'VALIDATION_FAILED',
  },
  {
    what: 'the handler, for a filing that is not there',
    by: platform,
    request: { target: '/api/v1/provenance/none' },
    status: 404,
    code: 'FILING_NOT_FOUND',
  },
  {
    what: 'the handler, for a filing of somebody else',
    by: platform,
    request: escrow(escrowTerms(foreign)),
    status: 403,
    code: 'PERMISSION_DENIED',
  },
  {
    what: 'the provider that declines',
    by: platform,
    request: escrow({ ...escrowTerms(own), buyerId: 'sim-decline' }),
    status: 402,
    code: 'PAYMENT_DECLINED',
  },
  {
    what: 'the provider that cannot be reached',
    by: platform,
    request: escrow({ ...escrowTerms(own), buyerId: 'sim-lost-request' }),
    status: 503,
    code: 'PAYMENT_PENDING',
  },
];

for (const { what, by, request, status, code } of afterNonce) {
  test(`the nonce stays spent after a apiError by ${what}`, async () => {
    const sent = { ...request, nonce: newNonce(), timestamp: stamp() };
    assertRefused(await sendRaw(by, sent), status, code);
    assertRefused(await sendRaw(by, sent), 401, 'NONCE_REUSED');
  });
}
