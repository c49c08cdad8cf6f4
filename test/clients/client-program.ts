import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type IncomingMessage, request } from 'node:http';
import { buffer, json } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { promisify } from 'node:util';
import { evidenceHash } from '../../src/domain/filing.ts';
import { listenLocally } from '../support/local-server.ts';
import { findInstruction } from '../support/openapi.ts';
import { startService } from '../support/service.ts';

/** Runs a command. Resolves with its output; rejects with its errors if it fails. */
export const run = promisify(execFile);

/**
 * Runs a program that makes the calls of a sale with a generated client, and prints the typed responses as one JSON object.
 * Asserts that the client neither lost nor changed a value, and accepts members of later releases.
 */
export async function assertSale(t: TestContext, program: string, words: string[], env = process.env) {
  const { publicUrl, platform } = await startService(t);
  const { apiKey, apiSecret } = await platform();
  const { url, extended } = await startLaterRelease(t, publicUrl);
  const access = { ARTSEAL_URL: url, ARTSEAL_API_KEY: apiKey, ARTSEAL_API_SECRET: apiSecret };
  const { stdout } = await run(program, words, { env: { ...env, ...access } });
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

/**
 * Starts a proxy that adds a member to each open response of a service, as a later release would. Resolves with its URL;
 * `extended` lists the operations whose responses it extended.
 */
async function startLaterRelease(t: TestContext, serviceUrl: string) {
  const extended: string[] = [];
  const server = createServer(async (incoming, outgoing) => {
    const { method = '', url = '', headers } = incoming;
    const forwarded = request(serviceUrl + url, { method, headers });
    forwarded.end(await buffer(incoming));
    const [answer] = (await once(forwarded, 'response')) as [IncomingMessage];
    const { statusCode = 500, headers: answered } = answer;
    const members = await json(answer);
    const { operationId = '', responses } = findInstruction(method, url) ?? {};
    const schema = responses?.[statusCode]?.content['application/json']?.schema;
    if (schema?.additionalProperties === true) {
      Object.assign(members as object, { laterMember: { of: ['a', 'later', 'release'] } });
      extended.push(operationId);
    }
    const { 'content-length': _, ...kept } = answered;
    outgoing.writeHead(statusCode, kept).end(JSON.stringify(members));
  });
  return { url: await listenLocally(t, server, () => server.close()), extended };
}
