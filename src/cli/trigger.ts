import type { Client } from '@connectrpc/connect';
import { AdminService } from '../../gen/artseal/v1/admin_pb.ts';
import { Webhook_Status } from '../../gen/artseal/v1/webhook_pb.ts';
import { clientVariables } from '../config/config.ts';
import type { EventType } from '../domain/event.ts';
import { exampleArtwork } from '../domain/example.ts';
import { isSandboxKey } from '../keys/mint.ts';
import { readCredentials, senderFor } from './client-commands.ts';
import { type Command, UsageError } from './command.ts';
import { eventPagesAfter, type FeedEvent, newestCursor, withinRate } from './event-feed.ts';
import { type CallSession, calls } from './session.ts';

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

/** All but usage.threshold: a command that is killed would leave the platform with another quota. */
type TriggeredType = Exclude<EventType, 'usage.threshold'>;

const recipes: Readonly<Record<TriggeredType, Recipe>> = {
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
  'webhook.disabled': disableWebhook,
};

const types = Object.keys(recipes) as TriggeredType[];

const reason = 'artseal trigger';

/** Says which server the operator's part of a recipe needs, if it fails. */
async function asOperator<Response>(called: Promise<Response>): Promise<Response> {
  try {
    return await called;
  } catch (cause) {
    const advice = 'run this on the machine of the sandbox, in its folder, or with --url and ARTSEAL_TOKEN';
    throw new Error(`a type that also needs the operator failed; ${advice}`, { cause });
  }
}

async function rotateKey({ apiKey, admin, print }: RecipeContext) {
  const overlapSeconds = 30 * 86_400;
  const { key, apiSecret } = await asOperator(admin.rotateKey({ keyId: apiKey, overlapSeconds, reason }));
  const pair = `${clientVariables.apiKey}=${key?.apiKey} ${clientVariables.apiSecret}=${apiSecret}`;
  print(`Rotated ${apiKey}, which ends in 30 days. Set before then: ${pair}`);
  return {};
}

async function disableWebhook({ admin, call, print }: RecipeContext) {
  const url = 'https://gallery.example/artseal';
  const endpoint = { url, eventTypes: ['key.rotated'], description: reason };
  const { webhookId } = (await call('POST', '/api/v1/webhooks', endpoint)).webhook;
  try {
    await asOperator(admin.setWebhookStatus({ webhookId, status: Webhook_Status.DISABLED, reason }));
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
    'Orders need the simulated payment provider. Without TYPE, lists the types of events that it can make.',
    'For key.rotated and webhook.disabled, it also acts as the operator, by the flags below.',
    'key.rotated ends the key after 30 days, and prints the new one.',
    'For usage.threshold, give the platform a quota with platform set, and make calls until 80 percent of it is used.',
  ],
  ...calls(async (session) => {
    const type = session.words.text('TYPE');
    if (type === undefined) {
      for (const one of types) session.print(one);
      return undefined;
    }
    const known = types.find((one) => one === type);
    if (known === undefined) throw new UsageError(`takes a TYPE of ${types.join(', ')}, not '${type}'`);
    session.print(JSON.stringify(await happen(known, session)));
    return undefined;
  }),
};

/** Makes an event of a type happen. Returns it as the feed does. */
async function happen(type: TriggeredType, session: CallSession): Promise<FeedEvent> {
  const { env, print, printError, client } = session;
  const { apiKey } = readCredentials(env);
  if (!isSandboxKey(apiKey))
    throw new Error('trigger works only in a sandbox, and the API key is of a live deployment');
  const send = withinRate(senderFor(env));
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
