import assert from 'node:assert/strict';
import { once } from 'node:events';
import { request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { test } from 'node:test';
import { createConnectTransport } from '@connectrpc/connect-node';
import { createTypedTransport } from '../../../src/client/typed.ts';
import { tester } from '../../support/audit-log.ts';
import { startService, type TestService } from '../../support/service.ts';
import { operatorTerms, tokenTerms } from '../../support/tokens.ts';
import { bearer, sending, typedClients, typedRefusal } from '../../support/typed-clients.ts';
import { transports } from './transports.ts';

function clientsSending(service: TestService, headers: Record<string, string>) {
  const interceptors = [sending(headers)];
  return typedClients(
    createConnectTransport({ baseUrl: service.internalUrl, httpVersion: '1.1', interceptors }),
  );
}

test('a call without Authorization is refused, and told what to send', async (t) => {
  const service = await startService(t);
  const { message } = await typedRefusal(
    clientsSending(service, {}).filings.listFilings({}),
    'AUTH_HEADER_MISSING',
  );
  assert.match(message, /Authorization/);
});

for (const [name, value] of Object.entries({
  'another scheme': (token: string) => `Basic ${token}`,
  'no scheme': (token: string) => token,
  'no token': () => 'Bearer',
  'a space before the token': (token: string) => `Bearer  ${token}`,
  'a token with more behind it': (token: string) => `Bearer ${token} x`,
  'two tokens': (token: string) => `Bearer ${token}, Bearer ${token}`,
  'a token in other letters': (token: string) => `Bearer ${token.toUpperCase()}`,
  'a shortened token': (token: string) => `Bearer ${token.slice(0, -1)}`,
  'a lengthened token': (token: string) => `Bearer ${token}0`,
  'a token that is not known': () => `Bearer it_sandbox_${'0'.repeat(64)}`,
  'a very long token': () => `Bearer it_${'0'.repeat(4_000)}`,
})) {
  test(`an Authorization with ${name} is refused`, async (t) => {
    const service = await startService(t);
    const token = await service.token(true);
    const { filings } = clientsSending(service, { Authorization: value(token) });
    const { message } = await typedRefusal(filings.listFilings({}), 'AUTH_HEADER_INVALID');
    assert.ok(!message.includes(token), 'the message shows no token');
  });
}

test('an API key with its secret is no token', async (t) => {
  const service = await startService(t);
  const { apiKey, apiSecret } = await service.platform();
  for (const word of [apiKey, apiSecret, `it_${apiSecret}`]) {
    const { filings } = clientsSending(service, bearer(word));
    await typedRefusal(filings.listFilings({}), 'AUTH_HEADER_INVALID');
  }
});

test('the scheme is read in any letters', async (t) => {
  const service = await startService(t);
  const token = await service.token();
  for (const scheme of ['Bearer', 'bearer', 'BEARER']) {
    await clientsSending(service, { Authorization: `${scheme} ${token}` }).filings.listFilings({});
  }
});

test('a revoked token is refused from the next call on, also on a connection that is open', async (t) => {
  const service = await startService(t);
  const { stored, token } = await service.issuance.issueToken(tokenTerms('ledger'), tester);
  const clients = Object.values(transports).map((make) => typedClients(make(service.internalUrl, token)));
  for (const { filings } of clients) await filings.listFilings({});
  await service.execute({
    kind: 'RevokeToken',
    by: { ...tester, atS: 1_790_000_000 },
    tokenId: stored.tokenId,
  });
  for (const { filings } of clients) await typedRefusal(filings.listFilings({}), 'AUTH_HEADER_INVALID');
});

/** Opens a call whose message is withheld; once its head is taken, what sends the message and gives the answer. */
const withheld = {
  'HTTP/1.1': async (url: URL, headers: Record<string, string>) => {
    const call = request(url, { method: 'POST', headers, agent: false });
    call.flushHeaders();
    await once(call, 'continue');
    return async (message: string) => {
      call.end(message);
      const [answer] = await once(call, 'response');
      return text(answer);
    };
  },
  'HTTP/2': async (url: URL, headers: Record<string, string>) => {
    const session = connectHttp2(url.origin);
    const call = session.request({ ':method': 'POST', ':path': url.pathname, ...headers });
    await once(call, 'continue');
    return async (message: string) => {
      call.end(message);
      const answer = await text(call);
      session.close();
      return answer;
    };
  },
};

for (const [name, open] of Object.entries(withheld)) {
  test(`a token that is revoked while its message is withheld is refused: ${name}`, async (t) => {
    const service = await startService(t);
    const { stored, token } = await service.issuance.issueToken(operatorTerms('ledger'), tester);
    const json = { 'Content-Type': 'application/json', Expect: '100-continue', ...bearer(token) };
    const send = await open(new URL('/artseal.v1.AdminService/CreateKey', service.internalUrl), json);
    await service.execute({
      kind: 'RevokeToken',
      by: { ...tester, atS: 1_790_000_000 },
      tokenId: stored.tokenId,
    });
    const { code, details } = JSON.parse(await send('{"name":"late","tier":"TRIAL"}'));
    assert.equal(code, 'unauthenticated');
    assert.equal(details[0].debug.reason, 'AUTH_HEADER_INVALID');
    const { admin } = typedClients(createTypedTransport(service.internalUrl, await service.token(true)));
    assert.deepEqual((await admin.listKeys({})).keys, []);
  });
}

test('a token is refused as an unknown method is: without telling whether it is good', async (t) => {
  const service = await startService(t);
  const answers = [await service.token(), 'it_unknown'].map(async (token) => {
    const answer = await fetch(`${service.internalUrl}/artseal.v1.FilingService/NoSuchMethod`, {
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

test('a caller that is not identified is refused before its message is read', async (t) => {
  const service = await startService(t);
  const { hostname, port } = new URL(service.internalUrl);
  const socket = connect({ host: hostname, port: Number(port) });
  // The message is announced and never sent.
  socket.write(
    [
      'POST /artseal.v1.FilingService/CreateFiling HTTP/1.1',
      `Host: ${hostname}`,
      'Content-Type: application/json',
      'Content-Length: 1000',
      'Connection: close',
      '\r\n',
    ].join('\r\n'),
  );
  const answer = await text(socket);
  assert.match(answer, /^HTTP\/1\.1 401 /);
  assert.match(answer, /"code":"unauthenticated"/);
});

test('a message that cannot be read is refused as unauthenticated if nobody is identified', async (t) => {
  const service = await startService(t);
  const url = `${service.internalUrl}/artseal.v1.FilingService/CreateFiling`;
  const headers = { 'Content-Type': 'application/json' };
  for (const body of ['{', '{"unknown":1}', 'x'.repeat(100_000)]) {
    const answer = await fetch(url, { method: 'POST', headers, body });
    assert.equal(answer.status, 401, await answer.text());
  }
});

test('no token is in the log', async (t) => {
  const service = await startService(t);
  const token = await service.token();
  await clientsSending(service, bearer(token)).filings.listFilings({});
  await typedRefusal(
    clientsSending(service, bearer(`${token}0`)).filings.listFilings({}),
    'AUTH_HEADER_INVALID',
  );
  await service.close();
  assert.ok(service.logLines.length >= 2);
  assert.ok(!service.logLines.join('').includes(token));
});
