import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBearerCheck } from '../../src/api/authentication.ts';
import { type Scope, scopes, type TokenTerms } from '../../src/domain/token.ts';
import { tester } from '../support/audit-log.ts';
import { createManualClock } from '../support/clock.ts';
import { fileScope } from '../support/file-scope.ts';
import { apiError } from '../support/rejected.ts';
import { startService } from '../support/service.ts';
import { operatorTerms, tokenTerms } from '../support/tokens.ts';

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
