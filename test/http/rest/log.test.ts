import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileArtwork, openEscrow } from '../../support/calls.ts';
import { fileScope } from '../../support/file-scope.ts';
import { rawExchange } from '../../support/raw-http.ts';
import { escrowTerms } from '../../support/samples.ts';
import { startService } from '../../support/service.ts';
import { headersOf, newNonce, type RestAnswer, send } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';

const service = await startService(fileScope, {
  provider: openTestProvider(fileScope, { FREEZE: 'LOST' }),
  env: { ARTSEAL_TRUSTED_PROXIES: '127.0.0.0/8,::1' },
});

/** The log line of a call. */
function lineOf({ headers }: RestAnswer) {
  const lines = service.logLines.map((line) => JSON.parse(line));
  return lines.find(({ requestId }) => requestId === headers['x-request-id']);
}

const marked = {
  author: 'marked-author',
  era: 'marked-era',
  size: 'marked-size',
  material: 'marked-material',
  condition: 'marked-condition',
  price: 987_654_321,
};

test('each call leaves one log line with its result, and nothing confidential', async () => {
  const platform = await service.platform();
  const confidential = new Set<string>([platform.apiSecret, ...Object.values(marked).map(String)]);
  const answers: RestAnswer[] = [];

  const call = async (target: string, body: string, more: { apiSecret?: string; nonce?: string } = {}) => {
    const { apiSecret = platform.apiSecret, nonce = newNonce() } = more;
    const key = { 'Idempotency-Key': `marked-key-${nonce}` };
    const headers = headersOf({ ...platform, apiSecret }, { target, body, nonce, headers: key });
    confidential.add(nonce).add(String(headers['X-Signature'])).add(apiSecret);
    const signed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    const answer = await send(service.publicUrl, platform, { target, body, headers: signed });
    answers.push(answer);
    return answer;
  };

  const body = JSON.stringify(marked);
  const nonce = newNonce();
  const { filingNo } = (await call('/api/v1/filing', body, { nonce })).json;
  await call('/api/v1/filing', body, { nonce });
  await call('/api/v1/filing?marked-parameter=1', body, { apiSecret: 'sk_sandbox_marked-guess', nonce });
  await call('/api/v1/filing', body.slice(0, -1));
  await call('/api/v1/filing', body.replace('"price"', '"marked-member":1,"price"'));
  await call('/api/v1/filing?marked-parameter=1', body);
  await call('/api/v1/marked-route', body);
  const terms = { ...escrowTerms(filingNo), buyerId: 'marked-buyer', sellerId: 'marked-seller' };
  await call('/api/v1/escrow', JSON.stringify(terms));
  assert.deepEqual(
    answers.map(({ status }) => status),
    [200, 401, 401, 400, 400, 400, 404, 503],
  );

  const lines = service.logLines.map((line) => JSON.parse(line));
  for (const { headers, status, json } of answers) {
    const [line, ...more] = lines.filter(({ requestId }) => requestId === headers['x-request-id']);
    assert.ok(line, `no line for ${headers['x-request-id']}`);
    assert.deepEqual(more, []);
    assert.equal(line.status, status);
    assert.equal(line.reason, json.code);
    assert.equal(typeof line.ms, 'number');
  }
  const log = service.logLines.join('\n');
  for (const value of confidential) assert.ok(!log.includes(value), `the log shows ${value}`);
  assert.doesNotMatch(log, /marked/);
});

test('a line names the caller if it is authenticated and the operation if it is found', async () => {
  const platform = await service.platform();
  const filed = lineOf(await fileArtwork(service, platform));
  assert.equal(filed.caller, platform.caller);
  assert.equal(filed.operation, 'artseal.v1.FilingService/CreateFiling');
  assert.equal(filed.reason, undefined);
  const stranger = lineOf(await fileArtwork(service, { ...platform, apiSecret: 'x' }));
  assert.equal(stranger.caller, undefined);
  assert.equal(stranger.operation, undefined);
  const lost = lineOf(await send(service.publicUrl, platform, { target: '/nowhere' }));
  assert.equal(lost.caller, platform.caller);
  assert.equal(lost.operation, undefined);
});

test('a line names the client, and the claimed key if the call was rejected', async () => {
  const platform = await service.platform();
  const target = '/api/v1/filing';
  const lineOfCall = async (headers: Record<string, string>) =>
    lineOf(await send(service.publicUrl, platform, { target, headers }));
  const forged = { 'X-Signature': '0'.repeat(64) };

  const admitted = await lineOfCall({ 'X-Forwarded-For': '203.0.113.9, 198.51.100.7' });
  assert.equal(admitted.client, '198.51.100.7');
  assert.equal(admitted.caller, platform.caller);
  assert.equal(admitted.claimedKey, undefined);

  const rejected = await lineOfCall({ ...forged, 'X-Forwarded-For': 'marked' });
  assert.equal(rejected.client, '127.0.0.1');
  assert.equal(rejected.caller, undefined);
  assert.equal(rejected.claimedKey, platform.apiKey);

  const unknown = `ak_live_${'0a'.repeat(16)}`;
  assert.equal((await lineOfCall({ 'X-Api-Key': unknown })).claimedKey, unknown);
  for (const claimed of [platform.apiSecret, `${unknown}0`, 'marked', 'a'.repeat(10_000)]) {
    assert.equal((await lineOfCall({ 'X-Api-Key': claimed })).claimedKey, undefined, claimed);
  }
  const log = service.logLines.join('\n');
  assert.doesNotMatch(log, /marked|a{99}/);
  assert.ok(!log.includes(platform.apiSecret));
});

test('a pending order is logged as a warning with its cause, an error of the caller is not', async () => {
  const platform = await service.platform();
  const { filingNo } = (await fileArtwork(service, platform)).json;
  const before = service.logLines.length;
  const pending = lineOf(await openEscrow(service, platform, filingNo));
  const rejected = lineOf(await openEscrow(service, platform, 'none'));
  const [info, warning] = [30, 40];
  assert.deepEqual([pending.level, rejected.level], [warning, info]);
  const lines = service.logLines.slice(before).map((line) => JSON.parse(line));
  const cause = lines.find(({ why }) => why !== undefined);
  assert.equal(cause.level, warning);
  assert.match(cause.why, /connection to the simulated provider broke/);
  assert.match(cause.escrowId, /^ES-/);
});

test('bytes that are not a request leave a line that contains none of them', async () => {
  const before = service.logLines.length;
  await rawExchange(service.publicUrl, 'marked-garbage\r\nX-Signature: marked\r\n\r\n');
  const [line = '', ...more] = service.logLines.slice(before);
  assert.deepEqual(more, []);
  const { client, status, reason } = JSON.parse(line);
  const expected = { client: '127.0.0.1', status: 400, reason: 'BAD_REQUEST_TARGET' };
  assert.deepEqual({ client, status, reason }, expected);
  assert.doesNotMatch(service.logLines.join(), /marked/);
});
