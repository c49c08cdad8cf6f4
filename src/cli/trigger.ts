import type { Client } from '@connectrpc/connect';
import { AdminService, type Key, Key_Tier } from '../../gen/artseal/v1/admin_pb.ts';
import { Webhook_Status } from '../../gen/artseal/v1/webhook_pb.ts';
import { type EventType, eventTypes } from '../domain/event.ts';
import { exampleArtwork } from '../domain/example.ts';
import { isSandboxKey } from '../keys/mint.ts';
import { readCredentials, senderFor } from './client-commands.ts';
import { type Command, UsageError } from './command.ts';
import { eventPagesAfter, type FeedEvent, newestCursor } from './event-feed.ts';
import { type CallSession, calls, itemsOf, type PageFields } from './session.ts';

/** How long to wait for the event, in milliseconds. Holds that end soon are announced once a minute. */
const eventTimeoutMs = 90_000;

/** What recipes work with. */
interface RecipeContext {
  readonly apiKey: string;
  readonly admin: Client<typeof AdminService>;
  readonly print: (line: string) => void;
  /** Makes a call of the public API, and prints it. Throws if it fails, except for PAYMENT_PENDING. */
  // biome-ignore lint/suspicious/noExplicitAny: responses have every shape.
  call(method: string, target: string, body?: object): Promise<any>;
}

/** Makes an event happen. Returns members of the event that distinguish it. */
type Recipe = (context: RecipeContext) => Promise<Partial<FeedEvent>>;

/** Sells a new work. The ids of the parties say what the simulated provider does. */
const sale =
  (next?: 'release' | 'refund', parties: { buyerId?: string; sellerId?: string } = {}): Recipe =>
  async ({ call }) => {
    const { filingNo } = await call('POST', '/api/v1/filing', exampleArtwork);
    const terms = { filingNo, type: 'GUARANTEE', amount: exampleArtwork.price };
    const both = { buyerId: 'buyer-1', sellerId: 'seller-1', ...parties };
    const { escrowId } = await call('POST', '/api/v1/escrow', { ...terms, ...both });
    if (next !== undefined) await call('POST', `/api/v1/escrow/${escrowId}/${next}`);
    return { filingNo };
  };

const recipes: Readonly<Record<EventType, Recipe>> = {
  'filing.created': async ({ call }) => ({
    filingNo: (await call('POST', '/api/v1/filing', exampleArtwork)).filingNo,
  }),
  'escrow.frozen': sale(),
  'escrow.released': sale('release'),
  'escrow.refunded': sale('refund'),
  'escrow.closed': sale('refund', { buyerId: 'sim-must-act-never' }),
  'escrow.in_review': sale(undefined, { buyerId: 'sim-wrong-amount' }),
  'escrow.hold_expiring': sale(undefined, { buyerId: 'sim-lapse-today' }),
  'escrow.payment_returned': sale('release', { sellerId: 'sim-refund-later' }),
  'escrow.payment_disputed': sale('release', { sellerId: 'sim-dispute-later' }),
  'escrow.dispute_won': sale('release', { sellerId: 'sim-dispute-won-later' }),
  'escrow.dispute_lost': sale('release', { sellerId: 'sim-dispute-lost-later' }),
  'escrow.payment_restored': sale('release', { sellerId: 'sim-refund-failed-later' }),
  'provenance.transferred': sale('release'),
  'key.rotated': rotateKey,
  'usage.threshold': reachThreshold,
  'webhook.disabled': disableWebhook,
};

const reason = 'artseal trigger';

async function rotateKey({ apiKey, admin, print }: RecipeContext) {
  const overlapSeconds = 30 * 86_400;
  const { key, apiSecret } = await admin.rotateKey({ keyId: apiKey, overlapSeconds, reason });
  print(`Rotated ${apiKey}, which ends in 30 days. The new key is ${key?.apiKey} with ${apiSecret}.`);
  return {};
}

/** Gives the platform a quota of which the next call is 80 percent, makes that call, and restores the agreement. */
async function reachThreshold({ apiKey, admin, call, print }: RecipeContext) {
  const { caller, tier, monthlyQuota } = await keyOf(apiKey, admin);
  const { calls: counted } = await admin.getUsage({ caller });
  const quota = ((counted + 1n) * 5n) / 4n;
  await admin.updatePlatform({ caller, tier: Key_Tier.ENTERPRISE, monthlyQuota: quota, reason });
  print(`Set the monthly quota of ${caller} to ${quota} for the next call.`);
  try {
    await call('GET', '/api/v1/filing?pageSize=1');
  } finally {
    const quotaBefore = monthlyQuota === undefined ? { unlimited: true } : { monthlyQuota };
    await admin.updatePlatform({ caller, tier, ...(tier === Key_Tier.ENTERPRISE && quotaBefore), reason });
  }
  return {};
}

async function keyOf(apiKey: string, admin: RecipeContext['admin']): Promise<Key> {
  for await (const key of itemsOf<'keys', Key>('keys', (page: PageFields) => admin.listKeys(page)))
    if (key.apiKey === apiKey) return key;
  throw new Error(`the server that commands call does not know ${apiKey}: it is not that of ARTSEAL_URL`);
}

async function disableWebhook({ admin, call, print }: RecipeContext) {
  const url = 'https://gallery.example/artseal';
  const endpoint = { url, eventTypes: ['key.rotated'], description: reason };
  const { webhookId } = (await call('POST', '/api/v1/webhooks', endpoint)).webhook;
  try {
    await admin.setWebhookStatus({ webhookId, status: Webhook_Status.DISABLED, reason });
    print(`Disabled ${webhookId}.`);
  } finally {
    await call('DELETE', `/api/v1/webhooks/${webhookId}`);
  }
  return { webhookId };
}

/** `artseal trigger` */
export const trigger: Command = {
  usage: 'trigger [TYPE]',
  summary: 'make an event of a type happen in a sandbox, with real calls',
  details: [
    'Makes the calls with the credentials that sign uses, prints each with its request id, waits for the event and prints it.',
    'Orders need the simulated payment provider. Without TYPE, lists the types of events.',
    'For key.rotated, usage.threshold and webhook.disabled, it also acts as the operator, by the flags below.',
    'key.rotated ends the key after 30 days, and prints the new one.',
  ],
  ...calls(async (session) => {
    const type = session.words.text('TYPE');
    if (type === undefined) {
      for (const one of eventTypes) session.print(one);
      return undefined;
    }
    const known = eventTypes.find((one) => one === type);
    if (known === undefined) throw new UsageError(`takes a TYPE of ${eventTypes.join(', ')}, not '${type}'`);
    session.print(JSON.stringify(await happen(known, session)));
    return undefined;
  }),
};

/** Makes an event of a type happen. Returns it as the feed does. */
async function happen(type: EventType, session: CallSession): Promise<FeedEvent> {
  const { env, print, printError, client } = session;
  const { apiKey } = readCredentials(env);
  if (!isSandboxKey(apiKey))
    throw new Error('trigger works only in a sandbox, and the API key is of a live deployment');
  const send = senderFor(env);
  const cursor = await newestCursor(send);
  const call: RecipeContext['call'] = async (method, target, body) => {
    const response = await send(method, target, body === undefined ? undefined : JSON.stringify(body));
    print(`${method} ${target}  ${response.status}  ${response.headers.get('X-Request-Id')}`);
    const answered = JSON.parse((await response.text()) || '{}');
    if (response.ok || answered.code === 'PAYMENT_PENDING') return answered;
    throw new Error(`${answered.code}: ${answered.message}`);
  };
  const members = await recipes[type]({ apiKey, admin: client(AdminService), print, call });
  const expected = Object.entries({ ...members, type }) as [keyof FeedEvent, unknown][];
  const untilMs = performance.now() + eventTimeoutMs;
  for await (const events of eventPagesAfter(send, cursor, printError)) {
    const found = events.find((event) => expected.every(([name, value]) => event[name] === value));
    if (found !== undefined) return found;
    if (performance.now() > untilMs) break;
  }
  throw new Error(`${type} did not happen within ${eventTimeoutMs / 1_000} s`);
}
