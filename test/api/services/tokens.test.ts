import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Platform_Status, Token_Scope, Token_Status } from '../../../gen/artseal/v1/admin_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { createManualClock } from '../../support/clock.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

const { READ, OPERATE } = Token_Scope;
const clock = createManualClock(Date.parse('2026-11-21T12:00:00Z'));
const service = await startService(fileScope, { clock, env: { ARTSEAL_TIME_ZONE: 'Asia/Shanghai' } });
const clientsOf = (token: string) => typedClients(createTypedTransport(service.internalUrl, token));
const { admin } = await service.operator();
const { caller: gallery } = await service.platform();

/** test/cli/token.test.ts has tokens that are created, listed and revoked. */
test('CreateToken binds a token to a platform until a time', async () => {
  const { caller } = await service.platform();
  const expiresAt = '2026-11-22T00:00:00+08:00';
  const { token, text } = await admin.createToken({
    ...{ name: 'shop', scopes: [READ], platform: caller, expiresAt: '2026-11-21T16:00:00.9Z' },
  });
  assert.deepEqual([token?.platform, token?.expiresAt], [caller, expiresAt]);
  assert.equal(token?.platformStatus, Platform_Status.ACTIVE);
  await clientsOf(text).filings.listFilings({});
  await admin.suspendPlatform({ caller });
  const listed = (await admin.listTokens({ pageSize: 100 })).tokens.at(-1);
  assert.deepEqual([listed?.status, listed?.platformStatus], [Token_Status.VALID, Platform_Status.SUSPENDED]);
  clock.setWall(Date.parse(expiresAt));
  assert.equal((await admin.listTokens({ pageSize: 100 })).tokens.at(-1)?.status, Token_Status.EXPIRED);
  clock.setWall(Date.parse('2026-11-21T12:00:00Z'));
});

test('a replay of CreateToken returns the same token without its text, and creates no other', async () => {
  const options = { headers: { 'Idempotency-Key': 'token-1' } };
  const request = { name: 'replayed', scopes: [READ] };
  const first = await admin.createToken(request, options);
  await clientsOf(first.text).filings.listFilings({});
  assert.deepEqual(await admin.createToken(request, options), { ...first, text: '' });
  const { tokens } = await admin.listTokens({ pageSize: 100 });
  assert.equal(tokens.filter(({ name }) => name === 'replayed').length, 1);
  await typedError(admin.createToken({ ...request, name: 'other' }, options), 'IDEMPOTENCY_KEY_REUSED');
});

/** test/domain/token.test.ts has all rules. */
const broken: readonly (readonly [fields: string, request: object])[] = [
  ['name', { name: '' }],
  ['scopes', { scopes: [Token_Scope.SCOPE_UNSPECIFIED] }],
  ['scopes', { scopes: [READ, 9] }],
  ['scopes', { scopes: [OPERATE], platform: gallery }],
  ['platform', { platform: 'nobody' }],
  ['name', { name: gallery }],
  ['expiresAt', { expiresAt: '2026-11-21T12:00:00Z' }],
  ['expiresAt', { expiresAt: 'soon' }],
  ['expiresAt', { expiresAt: '2026-13-01T00:00:00Z' }],
];

test('CreateToken names the fields that break a rule, and creates nothing', async () => {
  const { tokens: before } = await admin.listTokens({ pageSize: 100 });
  assert.ok(before.length > 0);
  for (const [field, request] of broken) {
    const { message } = await typedError(
      admin.createToken({ name: 'ledger', ...request }),
      'VALIDATION_FAILED',
    );
    assert.equal(message.split(' ')[0], field, message);
    assert.ok(!message.includes(';'), message);
  }
  assert.deepEqual((await admin.listTokens({ pageSize: 100 })).tokens, before);
});
