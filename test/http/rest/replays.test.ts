import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { localEndpoints, startReceiver } from '../../events/webhooks/receiver.ts';
import { crashCopy } from '../../store/promises/fixtures.ts';
import { createManualClock } from '../../support/clock.ts';
import { openApi } from '../../support/openapi.ts';
import { artwork, escrowTerms } from '../../support/samples.ts';
import { startService, type TestService } from '../../support/service.ts';
import { type RestAnswer, send } from '../../support/signed-request.ts';
import { openTestProvider } from '../../support/simulator.ts';

/** Tables that a replay may change, for its nonce, and tables that change by themselves. */
const others = ['spent_nonces', 'log_checkpoint', 'restoration'];

/** All rows, except those of `others`. */
function stored({ dataDir }: TestService): Record<string, unknown[]> {
  const database = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  try {
    const tables = database
      .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .pluck()
      .all() as string[];
    const read = tables.filter((name) => !others.includes(name));
    return Object.fromEntries(read.map((name) => [name, database.prepare(`SELECT * FROM ${name}`).all()]));
  } finally {
    database.close();
  }
}

test('a replay of any operation returns the stored response, does nothing and is not counted', async (t) => {
  let requests = 0;
  const { port } = await startReceiver(t, (_request, response) => {
    requests += 1;
    response.writeHead(204).end();
  });
  const clock = createManualClock(Date.UTC(2026, 10, 21, 12));
  const provider = openTestProvider(t, {}, clock);
  const service = await startService(t, { clock, provider, env: localEndpoints });
  const platform = await service.platform('STANDARD');
  const timestamp = String(clock.nowMs() / 1_000);
  const call = (method: string, path: string, content?: object, key?: string): Promise<RestAnswer> => {
    const headers = key === undefined ? {} : { 'Idempotency-Key': key };
    const body = content === undefined ? {} : { body: JSON.stringify(content) };
    return send(service.publicUrl, platform, {
      method,
      target: `/api/v1${path}`,
      timestamp,
      headers,
      ...body,
    });
  };
  const effects = () => ({
    requests,
    instructions: provider.instructions.length,
    stored: stored(service),
  });
  const called = new Set<string>();

  async function callTwice(operation: string, path: string, content?: object): Promise<RestAnswer['json']> {
    const [method = ''] = operation.split(' ');
    const key = `key of ${operation} ${path}`.replaceAll(/[^a-z0-9]/gi, '-');
    const first = await call(method, path, content, key);
    assert.equal(first.status, 200, `${operation}: ${first.text}`);
    const before = effects();
    const replay = await call(method, path, content, key);
    assert.deepEqual([replay.status, replay.text], [200, first.text], operation);
    assert.equal(replay.headers['idempotent-replayed'], 'true', operation);
    assert.deepEqual(effects(), before, operation);
    called.add(operation);
    return first.json;
  }

  const { filingNo } = await callTwice('POST /filing', '/filing', artwork);
  const links = `/filing/${filingNo}/evidence/links`;
  const { linkId } = await callTwice('POST /filing/{filingNo}/evidence/links', links, {});
  await callTwice('DELETE /filing/{filingNo}/evidence/links/{linkId}', `${links}/${linkId}`);
  const { escrowId } = await callTwice('POST /escrow', '/escrow', escrowTerms(filingNo));
  await callTwice('POST /escrow/{escrowId}/refund', `/escrow/${escrowId}/refund`);
  const other = (await call('POST', '/escrow', escrowTerms(filingNo))).json;
  await callTwice('POST /escrow/{escrowId}/release', `/escrow/${other.escrowId}/release`);
  const local = { url: `https://127.0.0.1:${port}/`, eventTypes: ['key.rotated'] };
  const { webhook } = await callTwice('POST /webhooks', '/webhooks', local);
  const path = `/webhooks/${webhook.webhookId}`;
  await callTwice('PATCH /webhooks/{webhookId}', path, { description: 'the gallery' });
  await callTwice('POST /webhooks/{webhookId}/secret', `${path}/secret`, {});
  await callTwice('POST /webhooks/{webhookId}/test', `${path}/test`);
  assert.equal(requests, 1);
  await callTwice('POST /webhooks/{webhookId}/redeliver', `${path}/redeliver`, {
    since: '2026-11-21T12:00:00Z',
  });
  await callTwice('DELETE /webhooks/{webhookId}', path);

  const writing = Object.entries(openApi.paths).flatMap(([route, methods]) =>
    Object.keys(methods)
      .filter((method) => ['post', 'patch', 'put', 'delete'].includes(method))
      .map((method) => `${method.toUpperCase()} ${route.replace('/api/v1', '')}`),
  );
  assert.deepEqual([...called].sort(), writing.sort());
});

test('a replay of a test event that a crash interrupted does not send it again, and says so', async (t) => {
  const came = Promise.withResolvers<void>();
  const held: (() => void)[] = [];
  const { port } = await startReceiver(t, (_request, response) => {
    held.push(() => response.writeHead(204).end());
    came.resolve();
  });
  const env = { ...localEndpoints, ARTSEAL_MASTER_KEY: `main:${'0f'.repeat(32)}` };
  const service = await startService(t, { env });
  const platform = await service.platform();
  const body = JSON.stringify({ url: `https://127.0.0.1:${port}/` });
  const created = await send(service.publicUrl, platform, { target: '/api/v1/webhooks', body });
  const target = `/api/v1/webhooks/${created.json.webhook.webhookId}/test`;
  const headers = { 'Idempotency-Key': 'once' };
  const first = send(service.publicUrl, platform, { method: 'POST', target, headers });
  await came.promise;
  const restarted = await startService(t, { env, dataDir: crashCopy(t, service.dataDir) });
  for (const answer of held) answer();
  assert.equal((await first).json.delivered, true);
  const replay = await send(restarted.publicUrl, platform, { method: 'POST', target, headers });
  assert.deepEqual(replay.json, {
    delivered: false,
    error: 'the result is not known: the test has not ended, or its server stopped',
  });
  assert.equal(held.length, 1);
});
