import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { run } from '../../build/client-generator.ts';
import { evidenceHash } from '../../src/domain/filing.ts';
import { startService } from '../support/service.ts';
import { startProxy } from './proxy.ts';

/**
 * Runs a program that makes the calls of a sale with a generated client, and prints the typed responses as one JSON object.
 * Asserts that the client neither lost nor changed a value, and accepts members of later releases.
 */
export async function assertSale(t: TestContext, program: string, words: string[]) {
  const { publicUrl, platform } = await startService(t);
  const { apiKey, apiSecret } = await platform();
  const { url, extended } = await startProxy(t, publicUrl);
  const access = { ARTSEAL_URL: url, ARTSEAL_API_KEY: apiKey, ARTSEAL_API_SECRET: apiSecret };
  const { stdout } = await run(program, words, { env: { ...process.env, ...access } });
  const { receipt, filing, opened, released, apiError, provenance, created, webhooks } = JSON.parse(stdout);
  assert.equal(filing.hash, evidenceHash({ ...filing, price: BigInt(filing.price) }));
  assert.deepEqual({ ...filing, ...receipt }, filing);
  assert.deepEqual(extended, ['getFiling', 'releaseEscrow', 'createWebhook', 'listWebhooks']);
  assert.equal(opened.state, 'FROZEN');
  assert.equal(released.state, 'RELEASED');
  assert.equal(apiError.code, 'ESCROW_STATE_CONFLICT');
  assert.deepEqual(
    provenance.records.map(({ event }: { event: string }) => event),
    ['SUBMITTED', 'TRANSFER'],
  );
  const { url: endpoint, eventTypes, status } = created.webhook;
  assert.deepEqual(
    { endpoint, eventTypes, status },
    {
      endpoint: 'https://gallery.example/hooks?of=sales',
      eventTypes: ['escrow.released'],
      status: 'ENABLED',
    },
  );
  assert.match(created.secret, /^whsec_/);
  assert.deepEqual(
    webhooks.webhooks.map(({ webhookId }: { webhookId: string }) => webhookId),
    [created.webhook.webhookId],
  );
}
