import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  checkTimestamp,
  clockDifferenceMaxS,
  createBearerCheck,
  credentialHeaders,
  readCredentials,
  type SentCredentials,
} from '../../src/api/authentication.ts';
import type { ApiError } from '../../src/domain/reason.ts';
import { type Scope, scopes, type TokenTerms } from '../../src/domain/token.ts';
import { tester } from '../support/audit-log.ts';
import { createManualClock } from '../support/clock.ts';
import { fileScope } from '../support/file-scope.ts';
import { apiError } from '../support/rejected.ts';
import { startService } from '../support/service.ts';
import { operatorTerms, tokenTerms } from '../support/tokens.ts';

const sent: SentCredentials = {
  apiKey: ['ak_sandbox_0123456789abcdef'],
  timestamp: ['1795222800'],
  nonce: ['8f14e45fceea167a'],
  signature: ['742d0dfb26efe80fc57adafb256773a9da08ddf9de3aeb5cb8892685c54374fc'],
};

const parts = Object.keys(credentialHeaders) as (keyof SentCredentials)[];

test('the four headers are read as sent', () => {
  const [apiKey, timestamp, nonce, signature] = parts.map((part) => sent[part][0]);
  assert.deepEqual(readCredentials(sent), { apiKey, timestamp, nonce, signature });
});

for (const part of parts) {
  const header = credentialHeaders[part];
  test(`${header} absent or empty is missing, and named`, () => {
    for (const values of [[], [''], ['', '']]) {
      const missing = apiError('AUTH_HEADER_MISSING', new RegExp(header));
      assert.throws(() => readCredentials({ ...sent, [part]: values }), missing);
    }
  });

  test(`${header} sent twice is invalid, and named, even with the same value`, () => {
    const [value = ''] = sent[part];
    for (const values of [
      [value, value],
      [value, ''],
      ['', value],
    ]) {
      const invalid = apiError('AUTH_HEADER_INVALID', new RegExp(`${header}.*more than once`));
      assert.throws(() => readCredentials({ ...sent, [part]: values }), invalid);
    }
  });
}

test('a missing header is reported before an invalid one, in any order', () => {
  for (const part of parts) {
    for (const other of parts.filter((candidate) => candidate !== part)) {
      const both = { ...sent, [part]: ['\x7f', '\x7f'], [other]: [] };
      const missing = apiError('AUTH_HEADER_MISSING', new RegExp(credentialHeaders[other]));
      assert.throws(() => readCredentials(both), missing);
    }
  }
});

const malformed: readonly (readonly [part: keyof SentCredentials, what: string, value: string])[] = [
  ['apiKey', 'with a space', 'ak_sandbox 1'],
  ['apiKey', 'with a character beyond ASCII', 'ak_sandbox_é'],
  ['apiKey', 'far too long', 'a'.repeat(10_000)],
  ['nonce', 'of 65 characters', 'a'.repeat(65)],
  ['nonce', 'with a space', 'a b'],
  ['nonce', 'with a comma', 'a,b'],
  ['nonce', 'with a quote', '"a"'],
  ['nonce', 'with a percent sign', '%41'],
  ['nonce', 'with a character beyond ASCII', 'é'],
  ['nonce', 'with a line feed at its end', 'a\n'],
  ['signature', 'in upper case', 'A'.repeat(64)],
  ['signature', 'of 63 digits', 'a'.repeat(63)],
  ['signature', 'of 65 digits', 'a'.repeat(65)],
  ['signature', 'in base64', 'dC0N+ybv6A/FetrbJWdzqdoI3fneOuXLiJJoXFQ3T/w='],
  ['signature', 'with a prefix', `sha256=${'a'.repeat(57)}`],
  ['signature', 'with a line feed at its end', `${'a'.repeat(64)}\n`],
];

for (const [part, what, value] of malformed) {
  test(`${credentialHeaders[part]} ${what} is invalid, and the message shows no value`, () => {
    assert.throws(
      () => readCredentials({ ...sent, [part]: [value] }),
      (error) => {
        apiError('AUTH_HEADER_INVALID', new RegExp(credentialHeaders[part]))(error);
        return !(error as ApiError).message.includes(value);
      },
    );
  });
}

test('a nonce is 1 to 64 of the characters allowed, all of them', () => {
  const all = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~+/=-';
  for (const nonce of ['a', 'a'.repeat(64), all.slice(0, 64), all.slice(-64)]) {
    assert.equal(readCredentials({ ...sent, nonce: [nonce] }).nonce, nonce);
  }
});

const nowS = 1_795_222_800;

test('a timestamp up to 300 seconds off is accepted at every millisecond of the clock', () => {
  assert.equal(clockDifferenceMaxS, 300);
  for (const difference of [-300, -1, 0, 1, 300]) {
    for (const ms of [0, 1, 999]) checkTimestamp(String(nowS + difference), nowS * 1_000 + ms);
  }
});

test('a timestamp 301 seconds off is rejected with the time of the server', () => {
  for (const difference of [-301, 301, -86_400, 86_400]) {
    assert.throws(
      () => checkTimestamp(String(nowS + difference), nowS * 1_000 + 999),
      (error) => {
        apiError('TIMESTAMP_EXPIRED', /300 seconds/)(error);
        return (error as ApiError).hints.serverTimeS === nowS;
      },
    );
  }
});

const otherForms = [
  '1795222800000',
  '179522280',
  '01795222800',
  '0795222800',
  '+1795222800',
  '-1795222800',
  '1795222800.0',
  '1.7952228e9',
  '1795222800 ',
  '1795222800\n',
  '0x6B00F6D0',
  '１７９５２２２８００',
  '2026-11-21T01:00:00Z',
  'now',
];

for (const form of otherForms) {
  test(`${JSON.stringify(form)} is no timestamp`, () => {
    const expired = apiError('TIMESTAMP_EXPIRED', /X-Timestamp.*ten digits/);
    assert.throws(() => checkTimestamp(form, nowS * 1_000), expired);
  });
}

const clock = createManualClock();
const service = await startService(fileScope, { clock });
const check = createBearerCheck(service.store, clock);

/** Issues a token to the ledger. */
const issue = (over: Partial<TokenTerms>) => service.issuance.issueToken(tokenTerms('ledger', over), tester);

test('a token identifies its service and its scopes', async () => {
  const choices: readonly (readonly Scope[])[] = [[], ['read'], ['file', 'escrow'], scopes];
  for (const chosen of choices) {
    const { stored, token } = await issue({ scopes: chosen });
    const { tokenId, callerId } = stored;
    assert.deepEqual(check(`Bearer ${token}`), {
      ...{ kind: 'service', tokenId, scopes: chosen, callerId },
      ...{ caller: 'ledger', isPlatform: false, filingCap: undefined },
    });
  }
});

test('a token for a platform identifies that platform, until it is suspended', async () => {
  const { caller: platform } = await service.platform();
  const { stored, token } = await issue({ platform });
  const { callerId, caller, isPlatform } = check(`Bearer ${token}`);
  assert.deepEqual([callerId, caller, isPlatform], [stored.platform?.callerId, platform, true]);
  await service.execute({ kind: 'SetPlatformStatus', by: tester, name: platform, status: 'SUSPENDED' });
  assert.throws(() => check(`Bearer ${token}`), apiError('KEY_SUSPENDED', /platform is suspended/));
  await service.execute({ kind: 'SetPlatformStatus', by: tester, name: platform, status: 'ACTIVE' });
  assert.equal(check(`Bearer ${token}`).caller, platform);
});

test('a token expires exactly at its time', async () => {
  const expiresAtS = Math.floor(clock.nowMs() / 1000) + 3_600;
  const { token } = await issue({ expiresAtS });
  clock.advance(expiresAtS * 1000 - 1 - clock.nowMs());
  assert.equal(check(`Bearer ${token}`).caller, 'ledger');
  clock.advance(1);
  assert.throws(
    () => check(`Bearer ${token}`),
    apiError('AUTH_HEADER_INVALID', /neither revoked nor expired/),
  );
});

test('the scheme may be in any case', async () => {
  const token = await service.token();
  for (const scheme of ['bearer', 'BEARER']) assert.equal(check(`${scheme} ${token}`).kind, 'service');
});

test('an absent or empty header is missing', () => {
  for (const nothing of [null, ''])
    assert.throws(() => check(nothing), apiError('AUTH_HEADER_MISSING', /Authorization/));
});

test('anything but a valid token is rejected with one message, which does not show it', async () => {
  const token = await service.token();
  const expired = await issue({ expiresAtS: Math.floor(clock.nowMs() / 1000) + 60 });
  clock.advance(120_000);
  const revoked = await service.issuance.issueToken(operatorTerms('revoked'), tester);
  await service.execute({ kind: 'RevokeToken', by: { ...tester, atS: 1 }, tokenId: revoked.stored.tokenId });
  const { apiKey, apiSecret } = await service.platform();
  const last = token.endsWith('0') ? '1' : '0';
  const messages = new Set<string>();
  for (const sent of [
    token,
    `Basic ${token}`,
    `Bearer  ${token}`,
    `Bearer ${token} `,
    `Bearer ${token}, Bearer ${token}`,
    `Bearer ${token.slice(0, -1)}${last}`,
    `Bearer ${token.slice(0, -1)}`,
    `Bearer ${token}0`,
    `Bearer ${token.toUpperCase()}`,
    `Bearer ${revoked.token}`,
    `Bearer ${expired.token}`,
    `Bearer ${apiKey}`,
    `Bearer ${apiSecret}`,
    `Bearer it_${apiSecret}`,
    'Bearer',
    'Bearer ',
    'Bearer it_',
    `Bearer it_${'x'.repeat(10_000)}`,
  ]) {
    assert.throws(
      () => check(sent),
      (error: Error) => {
        messages.add(error.message);
        return apiError('AUTH_HEADER_INVALID')(error);
      },
    );
  }
  assert.equal(messages.size, 1);
});
