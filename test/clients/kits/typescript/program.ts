/*
 * Makes the calls of the test plan with @artseal/client: reads a JSON object a line, and prints the result of each.
 */
import { createInterface } from 'node:readline';
import { inspect } from 'node:util';
import {
  ArtsealError,
  type Client,
  createClient,
  type Schemas,
  verifyWebhook,
  WebhookError,
} from '@artseal/client';
import { EvidenceError, verifyEvidence } from '@artseal/client/evidence';

interface Access {
  readonly url: string;
  readonly apiKey: string;
  readonly apiSecret: string;
  readonly clockOffsetS?: number;
  readonly timeoutS?: number;
}

// biome-ignore lint/suspicious/noExplicitAny: the test plan writes the values.
type Values = any;

const clients = new Map<string, Client>();

function clientOf({ clockOffsetS = 0, timeoutS = 60, ...access }: Access): Client {
  const name = JSON.stringify([access, clockOffsetS, timeoutS]);
  const nowMs = () => Date.now() + clockOffsetS * 1000;
  const client = clients.get(name) ?? createClient({ ...access, nowMs, timeoutMs: timeoutS * 1000 });
  clients.set(name, client);
  return client;
}

async function take<Item, Value>(
  items: AsyncIterable<Item>,
  pick: (item: Item) => Value,
  max = Number.POSITIVE_INFINITY,
): Promise<Value[]> {
  const values: Value[] = [];
  for await (const item of items) {
    values.push(pick(item));
    if (values.length === max) break;
  }
  return values;
}

const steps: Readonly<Record<string, (client: Client, values: Values) => Promise<unknown>>> = {
  file: (client, { artwork, idempotencyKey }) =>
    client.createFiling({ body: artwork, ...(idempotencyKey && { idempotencyKey }) }),
  get: async (client, { filingNo }): Promise<Schemas['Filing']> => client.getFiling({ filingNo }),
  provenance: (client, { filingNo }) => client.getProvenance({ filingNo }),
  escrow: (client, { order }) => client.createEscrow({ body: order }),
  release: (client, { escrowId }) => client.releaseEscrow({ escrowId }),
  filings: (client, { pageSize, max }) =>
    take(client.eachFiling({ pageSize }), ({ filingNo }) => filingNo, max),
  orders: (client, { pageSize, state }) =>
    take(client.eachEscrow({ pageSize, state }), ({ escrowId }) => escrowId),
  events: (client, { after }) => take(client.eachEvent({ after }), ({ sequence }) => sequence),
  addWebhook: (client, { url, eventTypes }) => client.createWebhook({ body: { url, eventTypes } }),
  editWebhook: (client, { webhookId, status }) => client.updateWebhook({ webhookId, body: { status } }),
  removeWebhook: (client, { webhookId }) => client.deleteWebhook({ webhookId }),
  print: async (client) => inspect(client, { depth: null, showHidden: true }),
  webhook: async (_, { secrets, headers, body, nowS }) =>
    verifyWebhook({ headers, body, secret: secrets, nowMs: nowS * 1000 }),
  evidence: async (_, { bundle, vkey }) => verifyEvidence(bundle, vkey),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { step, client, ...values } = JSON.parse(line);
  let response: object;
  try {
    const result = await steps[step]?.(client && clientOf(client), values);
    response = { ok: true, result };
  } catch (error) {
    const isKnown =
      error instanceof ArtsealError || error instanceof WebhookError || error instanceof EvidenceError;
    const isArgument = error instanceof TypeError;
    if (!isKnown && !isArgument) throw error;
    response = {
      ok: false,
      error: { ...(isArgument ? { code: 'ARGUMENT' } : error), message: error.message },
    };
  }
  process.stdout.write(`${JSON.stringify(response)}\n`);
}
