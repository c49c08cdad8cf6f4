/*
 * A platform's program on a client that openapi-typescript generated. It makes the calls of a sale and prints their
 * typed answers as JSON. ARTSEAL_URL, ARTSEAL_API_KEY and ARTSEAL_API_SECRET say where and as whom.
 */
import { createHash, createHmac, randomUUID } from 'node:crypto';
import createClient, { type Middleware } from 'openapi-fetch';
import type { paths } from './openapi.ts';

const { ARTSEAL_URL = '', ARTSEAL_API_KEY = '', ARTSEAL_API_SECRET = '' } = process.env;

const signing: Middleware = {
  async onRequest({ request }) {
    const { pathname, search } = new URL(request.url);
    const body = new Uint8Array(await request.clone().arrayBuffer());
    const bodyHash = createHash('sha256').update(body).digest('hex');
    const timestamp = String(Math.floor(Date.now() / 1000));
    const nonce = randomUUID();
    const message = request.method + pathname + search + bodyHash + timestamp + nonce;
    request.headers.set('X-Api-Key', ARTSEAL_API_KEY);
    request.headers.set('X-Timestamp', timestamp);
    request.headers.set('X-Nonce', nonce);
    request.headers.set(
      'X-Signature',
      createHmac('sha256', ARTSEAL_API_SECRET).update(message).digest('hex'),
    );
    return request;
  },
};

const client = createClient<paths>({ baseUrl: ARTSEAL_URL });
client.use(signing);

/** The answer of a call that must succeed. */
function ok<Data>({ data, error }: { data?: Data; error?: unknown }): Data {
  if (data === undefined) throw new Error(JSON.stringify(error));
  return data;
}

const receipt = ok(
  await client.POST('/api/v1/filing', {
    params: { header: { 'Idempotency-Key': randomUUID() } },
    body: {
      author: '齐白石 "Qi" 🖌',
      era: '1947',
      size: '68 × 136 cm',
      material: 'ink & colour',
      condition: 'good',
      price: 12_800_000,
    },
  }),
);
const { filingNo } = receipt;
const filing = ok(await client.GET('/api/v1/filing/{filingNo}', { params: { path: { filingNo } } }));
const opened = ok(
  await client.POST('/api/v1/escrow', {
    body: { filingNo, type: 'GUARANTEE', amount: filing.price, buyerId: 'buyer-1', sellerId: 'seller-1' },
  }),
);
const { escrowId } = opened;
const release = () => client.POST('/api/v1/escrow/{escrowId}/release', { params: { path: { escrowId } } });
const released = ok(await release());
const { error: apiError } = await release();
const provenance = ok(await client.GET('/api/v1/provenance/{filingNo}', { params: { path: { filingNo } } }));

const created = ok(
  await client.POST('/api/v1/webhooks', {
    body: { url: 'https://gallery.example/hooks?of=sales', eventTypes: ['escrow.released'] },
  }),
);
const webhooks = ok(await client.GET('/api/v1/webhooks'));

const sale = { receipt, filing, opened, released, apiError, provenance };
process.stdout.write(JSON.stringify({ ...sale, created, webhooks }));
