import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Token_Scope, Token_Status } from '../../../gen/artseal/v1/admin_pb.ts';
import { createTypedTransport } from '../../../src/client/typed.ts';
import type { TokenTerms } from '../../../src/domain/token.ts';
import { tester } from '../../support/audit-log.ts';
import { fileScope } from '../../support/file-scope.ts';
import { startService } from '../../support/service.ts';
import { tokenTerms } from '../../support/tokens.ts';
import { typedClients, typedError } from '../../support/typed-clients.ts';

const service = await startService(fileScope);
const clientsOf = (token: string) => typedClients(createTypedTransport(service.internalUrl, token));

/** The clients of a new token. */
async function clients(name: string, over: Partial<TokenTerms> = {}) {
  return clientsOf((await service.issuance.issueToken(tokenTerms(name, over), tester)).token);
}

test('a token without scopes can read what it may do, and nothing else', async () => {
  const { sessions, filings } = await clients('nobody', { scopes: [] });
  const { caller, scopes, tokenId } = await sessions.getSession({});
  assert.deepEqual([caller, scopes], ['nobody', []]);
  assert.match(tokenId, /^tok_/);
  await typedError(filings.listFilings({}), 'PERMISSION_DENIED');
});

test('a link becomes one session, with its scopes, for eight hours', async () => {
  const link = await clients('console-link:alice', { scopes: ['read'] });
  const beganMs = Date.now();
  const { token, text } = await link.sessions.createSession({});
  assert.equal(token?.name, 'console:alice');
  assert.deepEqual(token?.scopes, [Token_Scope.READ]);
  const lastsMs = Date.parse(token?.expiresAt ?? '') - beganMs;
  assert.ok(lastsMs > 28_790_000 && lastsMs < 28_810_000, String(lastsMs));
  await typedError(link.sessions.createSession({}), 'AUTH_HEADER_INVALID');

  const session = clientsOf(text);
  assert.equal((await session.sessions.getSession({})).tokenId, token?.tokenId);
  await typedError(session.sessions.createSession({}), 'PERMISSION_DENIED');
  await session.sessions.endSession({});
  await typedError(session.sessions.getSession({}), 'AUTH_HEADER_INVALID');
});

test('of calls that use a link at the same time, one gets a session', async () => {
  const { admin } = await service.operator();
  const { sessions } = await clients('console-link:bob');
  const calls = Array.from({ length: 8 }, () => sessions.createSession({}));
  const settled = await Promise.allSettled(calls);
  assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1);
  const { tokens } = await admin.listTokens({ pageSize: 100 });
  const ofBob = tokens.filter(({ name }) => name.endsWith(':bob'));
  assert.deepEqual(
    ofBob.map(({ name, status }) => [name, status]),
    [
      ['console-link:bob', Token_Status.REVOKED],
      ['console:bob', Token_Status.VALID],
    ],
  );
  const { entries } = await admin.listAuditLog({ pageSize: 2 });
  assert.deepEqual(
    entries.map(({ action }) => action),
    ['token create', 'token revoke'],
  );
});

test('no other token can be exchanged or revokes itself', async () => {
  const { caller: platform } = await service.platform();
  const others = [
    await clients('ledger'),
    await clients('my console-link:'),
    await clients('console-link:mallory', { platform }),
  ];
  for (const { sessions } of others) {
    await typedError(sessions.createSession({}), 'PERMISSION_DENIED');
    await typedError(sessions.endSession({}), 'PERMISSION_DENIED');
    await sessions.getSession({});
  }
});
