import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createBearerCheck } from '../../src/calls/bearer.ts';
import { tester } from '../support/acts.ts';
import { fileScope } from '../support/file-scope.ts';
import { refusal } from '../support/refused.ts';
import { startService } from '../support/service.ts';

const service = await startService(fileScope);
const check = createBearerCheck(service.store);

test('a token identifies its service, with or without the rights of an operator', async () => {
  for (const operator of [false, true]) {
    const { kind, caller, operator: identified } = check(`Bearer ${await service.token(operator)}`);
    assert.equal(kind, 'service');
    assert.match(caller, /^service-\d+$/);
    assert.equal(identified, operator);
  }
});

test('the scheme is told in any case', async () => {
  const token = await service.token();
  for (const scheme of ['bearer', 'BEARER']) assert.equal(check(`${scheme} ${token}`).kind, 'service');
});

test('no header is missing', () => {
  for (const nothing of [null, ''])
    assert.throws(() => check(nothing), refusal('AUTH_HEADER_MISSING', /Authorization/));
});

test('whatever is not a valid token is refused with one message that shows nothing of it', async () => {
  const token = await service.token();
  const revoked = await service.issuance.issueToken('revoked', true, tester);
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
    `Bearer ${apiKey}`,
    `Bearer ${apiSecret}`,
    'Bearer',
    'Bearer ',
    'Bearer it_',
    `Bearer it_${'x'.repeat(10_000)}`,
  ]) {
    assert.throws(
      () => check(sent),
      (error: Error) => {
        messages.add(error.message);
        return refusal('AUTH_HEADER_INVALID')(error);
      },
    );
  }
  assert.equal(messages.size, 1);
});
