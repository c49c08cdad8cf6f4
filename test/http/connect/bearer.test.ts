import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { tester } from '../../support/audit-log.ts';
import { eventually } from '../../support/eventually.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawAnswer, rawRequest } from '../../support/raw-http.ts';
import { startService } from '../../support/service.ts';
import { operatorTerms, tokenTerms } from '../../support/tokens.ts';
import { bearer, typedClients, typedError } from '../../support/typed-clients.ts';
import { connectOverHttp1 } from './transports.ts';

const service = await startService(fileScope);
const { internalUrl } = service;

const revoke = (tokenId: string) =>
  service.execute({ kind: 'RevokeToken', by: { ...tester, atS: 1_790_000_000 }, tokenId });

test('a revoked token is rejected from the next call, even on an open connection', async () => {
  const { stored, token } = await service.issuance.issueToken(tokenTerms('ledger'), tester);
  const clients = [connectOverHttp1, createTypedTransport].map((make) =>
    typedClients(make(internalUrl, token)),
  );
  for (const { filings } of clients) await filings.listFilings({});
  await revoke(stored.tokenId);
  for (const { filings } of clients) await typedError(filings.listFilings({}), 'AUTH_HEADER_INVALID');
});

test('a call whose token is revoked before its message arrives is rejected', async () => {
  const { stored, token } = await service.issuance.issueToken(operatorTerms('office'), tester);
  const headers = { 'Content-Type': 'application/json', Expect: '100-continue', ...bearer(token) };
  const target = `${internalUrl}/artseal.v1.AdminService/CreateKey`;
  const call = request(target, { method: 'POST', headers, agent: false });
  call.flushHeaders();
  await once(call, 'continue');
  await revoke(stored.tokenId);
  call.end('{"name":"late","tier":"TRIAL"}');
  const [answer] = await once(call, 'response');
  const { code, details } = JSON.parse(await text(answer));
  assert.deepEqual([code, details[0].debug.reason], ['unauthenticated', 'AUTH_HEADER_INVALID']);
  assert.equal(await service.execute({ kind: 'FindPlatform', name: 'late' }), undefined);
});

test('a call of an unknown method does not show whether its token is valid', async () => {
  const answers = [await service.token(), 'it_unknown'].map(async (token) => {
    const answer = await fetch(`${internalUrl}/artseal.v1.FilingService/NoSuchMethod`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...bearer(token) },
      body: '{}',
    });
    const { code, message } = (await answer.json()) as { code: string; message: string };
    return [answer.status, code, message];
  });
  const [good, bad] = await Promise.all(answers);
  assert.deepEqual(good, bad);
});

test('a call without a token is rejected before its message is read', async () => {
  // The client announces the message, but never sends it.
  const headers = { Host: 'x', 'Content-Type': 'application/json', 'Content-Length': '1000' };
  const target = '/artseal.v1.FilingService/CreateFiling';
  const { status, json } = await rawAnswer(internalUrl, rawRequest('POST', target, headers));
  assert.deepEqual([status, json.code], [401, 'unauthenticated']);
});

test('the log line of a call has the id of the token, and no line has a token', async () => {
  const { stored, token } = await service.issuance.issueToken(tokenTerms('ledger'), tester);
  await typedClients(connectOverHttp1(internalUrl, token)).filings.listFilings({});
  const line = await eventually('the log line', 60_000, () =>
    service.logLines.map((text) => JSON.parse(text)).find(({ tokenId }) => tokenId === stored.tokenId),
  );
  assert.deepEqual([line.caller, line.operation], ['ledger', 'artseal.v1.FilingService/ListFilings']);
  const wrong = typedClients(connectOverHttp1(internalUrl, `${token}0`));
  const { message } = await typedError(wrong.filings.listFilings({}), 'AUTH_HEADER_INVALID');
  assert.ok(!message.includes(token));
  assert.ok(!service.logLines.join('').includes(token));
});
