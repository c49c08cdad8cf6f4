import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { test } from 'node:test';
import { tester } from '../../support/audit-log.ts';
import { fileArtwork } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { openLedger } from '../../support/ledger.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { assertRejected } from '../../support/rejected.ts';
import { artwork } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce, type RestAnswer, send } from '../../support/signed-request.ts';

const service = await startService(fileScope);
const ledger = openLedger(fileScope, service);
const platform = await service.platform();

/** Asserts that a call leaves the database as it was. */
async function changingNothing(call: () => Promise<void>): Promise<void> {
  const state = () => ({
    ...ledger.holdings(),
    calls: ledger.calls(platform.caller),
    nonces: ledger.nonces(),
  });
  const before = state();
  await call();
  assert.deepEqual(state(), before);
}

/** test/api/authentication.test.ts and order-of-checks.test.ts have the wrong headers. */
test('header names have any case, and white space around values is ignored', async () => {
  const target = '/api/v1/filing';
  const body = JSON.stringify(artwork);
  const headers = Object.entries(headersOf(platform, { target, body }));
  const upper = headers.map(([name, value]) => [name.toUpperCase(), `  ${value}\t`]);
  const sent = { Host: 'x', 'Content-Length': String(Buffer.byteLength(body)), ...Object.fromEntries(upper) };
  assert.equal((await rawAnswer(service.publicUrl, rawRequest('POST', target, sent, body))).status, 200);
});

/** The parts of an error response that are the same each time. */
function visible({ status, headers, json }: RestAnswer): object {
  const { requestId: _, ...envelope } = json;
  const { date: __, 'x-request-id': ___, ...fixed } = headers;
  return { status, fixed, envelope };
}

test('an unknown key, a wrong secret, a revoked key and a rotated key get the same response', async () => {
  const revoked = await service.platform();
  await service.execute({ kind: 'SetKeyStatus', by: tester, keyId: revoked.keyId, status: 'REVOKED' });
  const rotated = await service.platform();
  await service.issuance.rotateKey(rotated.keyId, 0, tester);
  const unknownKey = { ...platform, apiKey: `ak_sandbox_${newNonce()}` };
  const wrongSecret = { ...platform, apiSecret: `sk_sandbox_${newNonce()}` };
  const revokedWrongSecret = { ...wrongSecret, apiKey: revoked.apiKey };
  await changingNothing(async () => {
    const rejected: RestAnswer[] = [];
    const sent = { nonce: newNonce(), timestamp: String(Math.floor(Date.now() / 1_000)) };
    for (const credentials of [unknownKey, wrongSecret, revoked, rotated, revokedWrongSecret]) {
      const answer = await fileArtwork(service, credentials, sent);
      assertRejected(answer, 401, 'SIGNATURE_INVALID');
      rejected.push(answer);
    }
    for (const answer of rejected) assert.deepEqual(visible(answer), visible(rejected[0] as RestAnswer));
  });
});

const longest = `/${'"'.repeat(2_047)}`;
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex');

for (const [what, method, target, body] of [
  ['a filing', 'POST', '/api/v1/filing', JSON.stringify(artwork)],
  ['a query with escapes', 'GET', '/api/v1/escrow?state=FROZEN&pageToken=%E7%9F%B3', ''],
  ['the longest target', 'DELETE', longest, ''],
] as const) {
  test(`the error for a wrong signature ends with the text to sign: ${what}`, async () => {
    const nonce = `~.1+/=-${newNonce()}`;
    const timestamp = String(Math.floor(Date.now() / 1_000));
    const sent = { method, target, timestamp, nonce, ...(body === '' ? {} : { body }) };
    const expected = `${method}${target}${hashOf(body)}${timestamp}${nonce}`;
    for (const credentials of [
      { ...platform, apiSecret: 'wrong' },
      { ...platform, apiKey: 'unknown' },
    ]) {
      const answer = await send(service.publicUrl, credentials, sent);
      assertRejected(answer, 401, 'SIGNATURE_INVALID');
      assert.ok(answer.json.message.endsWith(`: ${expected}`), answer.json.message);
      assert.ok(answer.json.message.length < expected.length + 200);
    }
    const signature = createHmac('sha256', platform.apiSecret).update(expected).digest('hex');
    const corrected = await send(service.publicUrl, platform, { ...sent, signature });
    assert.notEqual(corrected.json.code, 'SIGNATURE_INVALID', 'signing that text is what it takes');
    assert.notEqual(corrected.status, 401);
  });
}

test('headers of proxies change neither the request id nor the signed request', async () => {
  const own = '00000000-0000-7000-8000-000000000000';
  const headers = {
    Forwarded: 'for=192.0.2.1;host=elsewhere.example;proto=http',
    'X-Forwarded-For': '127.0.0.1',
    'X-Forwarded-Host': 'elsewhere.example',
    'X-Forwarded-Prefix': '/elsewhere',
    'X-HTTP-Method-Override': 'GET',
    'X-Original-URL': '/elsewhere',
    'X-Rewrite-URL': '/elsewhere',
    'X-Request-Id': own,
  };
  const answers = [
    await fileArtwork(service, platform, { headers }),
    await fileArtwork(service, platform, { headers: { ...headers, 'X-Nonce': undefined } }),
    await fileArtwork(service, platform, { headers: { ...headers, 'X-Signature': '0'.repeat(64) } }),
  ];
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 401, 401],
  );
  assert.equal(new Set([own, ...answers.map((answer) => answer.headers['x-request-id'])]).size, 4);
});
