import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { listenLocally } from './local-server.ts';

/** Cards by what becomes of their authorisation; any other payment method is unknown. */
export const cards = {
  good: 'pm_card_visa',
  declined: 'pm_card_chargeDeclined',
  authenticationRequired: 'pm_card_authenticationRequired',
  /** Confirmed without an error, but the buyer has to do something. */
  actionRequired: 'pm_card_actionRequired',
  processing: 'pm_card_processing',
} as const;

/** Smallest and largest amount that is taken, in minor units of any currency. */
const amounts = { min: 50, max: 99_999_999 } as const;
const apiVersionPattern = /^\d{4}-\d\d-\d\d\.\w+$/;

/** What goes wrong with a request. */
export type Fault =
  /** The connection breaks before anything has happened. */
  | 'lose-request'
  /** Everything happens, and then the connection breaks. */
  | 'lose-answer'
  /** Nothing happens, and the answer 500 is saved under the idempotency key. */
  | 'fail-and-save'
  /** Everything happens, but the answer 500 is what is saved under the key. */
  | 'do-and-fail'
  /** Refused before anything is looked at, nothing is saved: 401, 403, 429, 503. */
  | { readonly status: number }
  /** Waits, with its key in use, before anything happens; then goes on. */
  | { readonly until: () => Promise<void> }
  /** Waits before the request arrives at all, be the connection lost or not. */
  | { readonly onTheWay: () => Promise<void> };

/** One request as it arrived. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly idempotencyKey: string | undefined;
  readonly headers: IncomingMessage['headers'];
}

/** A PaymentIntent; the members that this project looks at, as Stripe spells them. */
export interface StandInIntent {
  readonly id: string;
  readonly object: 'payment_intent';
  readonly created: number;
  readonly currency: string;
  readonly customer: string | null;
  readonly metadata: Readonly<Record<string, string>>;
  readonly transfer_data: { readonly destination: string } | null;
  readonly client_secret: string;
  amount: number;
  amount_capturable: number;
  amount_received: number;
  status: string;
  cancellation_reason: string | null;
  latest_charge: StandInCharge | null;
}

interface StandInCharge {
  readonly id: string;
  readonly object: 'charge';
  readonly amount: number;
  readonly status: 'succeeded' | 'failed';
}

/** Stripe as far as this project uses it, over HTTP and with a memory. */
export interface StripeStandIn {
  /** http://127.0.0.1:port */
  readonly url: string;
  readonly apiKey: string;
  readonly webhookSecret: string;
  /** The PaymentIntents, the newest last; a test may change them, as the dashboard would. */
  readonly intents: StandInIntent[];
  /** The requests that arrived, the newest last. */
  readonly requests: SeenRequest[];
  /** Customers there are; a customer not among them is unknown. */
  readonly customers: Set<string>;
  /** What happens to the next request whose method and path match, such as /^POST .*capture$/. */
  failNext(pattern: RegExp, fault: Fault): void;
  /** Cancels an authorisation that has run out. */
  expire(intentId: string): void;
  /** Has every request refused for its key, or none any more. */
  revokeKey(isRevoked: boolean): void;
  /** Forgets all idempotency keys, as Stripe does after 24 hours or more. */
  forgetKeys(): void;
  /** Body and Stripe-Signature of an event. */
  event(id: string, type: string, object: object, signedAtS: number): { body: Buffer; signature: string };
  /** The Stripe-Signature of a body. */
  sign(body: string | Uint8Array, signedAtS: number): string;
}

interface Answer {
  readonly status: number;
  readonly body: object;
  /** Whether endpoint execution had begun, so that the answer is saved under the key. */
  readonly saved?: boolean;
}

interface UsedKey {
  readonly fingerprint: string;
  answer: Answer | undefined;
}

interface State {
  readonly intents: StandInIntent[];
  readonly customers: Set<string>;
  readonly keys: Map<string, UsedKey>;
}

/** Starts a stand-in, closed after the test. */
export async function startStripeStandIn(test: Pick<TestContext, 'after'>): Promise<StripeStandIn> {
  const apiKey = 'sk_test_standin';
  const webhookSecret = 'whsec_standin';
  const state: State = { intents: [], customers: new Set(['cus_1', 'cus_2']), keys: new Map() };
  const requests: SeenRequest[] = [];
  let isRevoked = false;
  const faults: { pattern: RegExp; fault: Fault }[] = [];
  const faultOf = (line: string): Fault | undefined => {
    const place = faults.findIndex(({ pattern }) => pattern.test(line));
    return place < 0 ? undefined : faults.splice(place, 1)[0]?.fault;
  };

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const seen = await readRequest(request);
    const fault = faultOf(`${seen.method} ${seen.path}`);
    if (fault === 'lose-request') return void response.destroy();
    if (typeof fault === 'object' && 'onTheWay' in fault) await fault.onTheWay();
    requests.push(seen);
    if (typeof fault === 'object' && 'status' in fault) return send(response, refusedBy(fault.status));
    if (isRevoked || !isAuthorised(request, apiKey)) return send(response, refusedBy(401));
    const answered = await idempotently(state, seen, fault);
    if (fault === 'lose-answer') return void response.destroy();
    send(response, answered.answer, answered.replayed);
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error));
  });
  const url = await listenLocally(test, server, () => server.closeAllConnections());

  const sign = (body: string | Uint8Array, signedAtS: number) => {
    const mac = createHmac('sha256', webhookSecret).update(`${signedAtS}.`).update(body).digest('hex');
    return `t=${signedAtS},v1=${mac},v0=${'0'.repeat(mac.length)}`;
  };
  return {
    url,
    apiKey,
    webhookSecret,
    intents: state.intents,
    requests,
    customers: state.customers,
    failNext: (pattern, fault) => faults.push({ pattern, fault }),
    expire: (intentId) => {
      const intent = state.intents.find(({ id }) => id === intentId);
      if (intent?.status !== 'requires_capture') throw new Error(`${intentId} holds nothing`);
      Object.assign(intent, { status: 'canceled', amount_capturable: 0, cancellation_reason: 'automatic' });
    },
    revokeKey: (revoked) => {
      isRevoked = revoked;
    },
    forgetKeys: () => state.keys.clear(),
    sign,
    event: (id, type, object, signedAtS) => {
      const body = Buffer.from(JSON.stringify({ id, object: 'event', type, data: { object } }, null, 2));
      return { body, signature: sign(body, signedAtS) };
    },
  };
}

async function readRequest(request: IncomingMessage): Promise<SeenRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const { method = '', headers } = request;
  const url = new URL(request.url ?? '', 'http://stand-in');
  const body = Buffer.concat(chunks).toString();
  const params = Object.fromEntries(method === 'POST' ? new URLSearchParams(body) : url.searchParams);
  const key = headers['idempotency-key'];
  const idempotencyKey = typeof key === 'string' ? key : undefined;
  return { method, path: url.pathname, params, idempotencyKey, headers };
}

function isAuthorised({ headers }: IncomingMessage, apiKey: string): boolean {
  const basic = `Basic ${Buffer.from(`${apiKey}:`).toString('base64')}`;
  return [`Bearer ${apiKey}`, basic].includes(headers.authorization ?? '');
}

function send(response: ServerResponse, { status, body }: Answer, replayed = false): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'request-id': 'req_standin',
    ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
  });
  response.end(JSON.stringify(body));
}

/** Carries a request out unless its key says that it has been, as Stripe's idempotency layer does. */
async function idempotently(
  state: State,
  seen: SeenRequest,
  fault: Fault | undefined,
): Promise<{ answer: Answer; replayed?: boolean }> {
  const key = seen.method === 'POST' ? seen.idempotencyKey : undefined;
  const fingerprint = JSON.stringify([seen.path, seen.params]);
  const used = key === undefined ? undefined : state.keys.get(key);
  if (used !== undefined && used.fingerprint !== fingerprint) return { answer: keyInOtherUse };
  if (used !== undefined) {
    return used.answer === undefined ? { answer: keyInUse } : { answer: used.answer, replayed: true };
  }
  const entry: UsedKey = { fingerprint, answer: undefined };
  if (key !== undefined) state.keys.set(key, entry);
  if (typeof fault === 'object' && 'until' in fault) await fault.until();
  const done = fault === 'fail-and-save' ? serverError : carryOut(state, seen);
  const answer = fault === 'do-and-fail' ? serverError : done;
  if (answer.saved === false && key !== undefined) state.keys.delete(key);
  // The body as it is now: the PaymentIntent moves on, the saved answer does not.
  entry.answer = { ...answer, body: structuredClone(answer.body) };
  return { answer: entry.answer };
}

function carryOut(state: State, seen: SeenRequest): Answer {
  const { method, path, params } = seen;
  const [, id, verb] = /^\/v1\/payment_intents(?:\/(\w+)(?:\/(\w+))?)?$/.exec(path) ?? [path, '?'];
  if (!apiVersionPattern.test(String(seen.headers['stripe-version'])))
    return invalid('No version', {}, false);
  const unknown = Object.keys(params).find((param) => !knownParams(method, id, verb).test(param));
  if (unknown !== undefined) return invalid(`No ${unknown}`, { code: 'parameter_unknown' }, false);
  if (id === undefined) return method === 'POST' ? create(state, params) : list(state, params);
  const intent = state.intents.find((candidate) => candidate.id === id);
  if (intent === undefined) return missing('intent', id, 404);
  const charge = params['expand[0]'] === 'latest_charge';
  if (method === 'GET') return ok(shown(intent, charge));
  if (verb === 'capture') return capture(intent, params);
  if (verb === 'cancel') return cancel(intent, charge);
  return invalid(`no such endpoint: ${method} ${path}`, {}, false);
}

/** The parameters that an endpoint has, of those that this project may come to use. */
function knownParams(method: string, id: string | undefined, verb: string | undefined): RegExp {
  const expand = 'expand\\[\\d+\\]';
  if (verb === 'capture') return new RegExp(`^(${expand}|amount_to_capture|final_capture)$`);
  if (verb === 'cancel') return new RegExp(`^(${expand}|cancellation_reason)$`);
  if (id !== undefined) return new RegExp(`^${expand}$`);
  if (method === 'GET')
    return new RegExp(`^(${expand}|customer|created\\[[gl]te?\\]|limit|starting_after|ending_before)$`);
  const plain = 'amount|currency|customer|payment_method|capture_method|confirm|off_session|description';
  const nested = 'metadata\\[\\w+\\]|transfer_data\\[destination\\]';
  const automatic = 'automatic_payment_methods\\[(enabled|allow_redirects)\\]';
  return new RegExp(`^(${expand}|${plain}|${nested}|${automatic})$`);
}

function create(state: State, params: SeenRequest['params']): Answer {
  const amount = Number(params.amount);
  const { customer = null, payment_method: card } = params;
  if (!Number.isSafeInteger(amount)) return invalid('Invalid integer', { param: 'amount' }, false);
  if (params.off_session !== undefined && params.confirm !== 'true')
    return invalid('off_session is for confirm=true');
  if (amount < amounts.min) return invalid('Too small', { code: 'amount_too_small', param: 'amount' });
  if (amount > amounts.max) return invalid('Too large', { code: 'amount_too_large', param: 'amount' });
  if (customer !== null && !state.customers.has(customer)) return missing('customer', customer, 400);
  if (card !== undefined && !Object.values(cards).some((known) => known === card))
    return missing('payment_method', card, 400);
  const confirmed = params.confirm === 'true';
  if (confirmed && params['automatic_payment_methods[allow_redirects]'] !== 'never')
    return invalid('A return_url is needed');
  const intent = unconfirmed(state, params, amount, customer);
  state.intents.push(intent);
  return confirmed ? confirm(intent, card) : ok(shown(intent));
}

function unconfirmed(
  { intents }: State,
  params: SeenRequest['params'],
  amount: number,
  customer: string | null,
): StandInIntent {
  const metadata = Object.entries(params).flatMap(([name, value]) => {
    const [, key] = /^metadata\[(\w+)\]$/.exec(name) ?? [];
    return key === undefined ? [] : [[key, value]];
  });
  const destination = params['transfer_data[destination]'];
  const id = `pi_${intents.length + 1}`;
  return {
    id,
    object: 'payment_intent',
    created: Math.floor(Date.now() / 1000),
    currency: params.currency ?? '',
    customer,
    metadata: Object.fromEntries(metadata),
    transfer_data: destination === undefined ? null : { destination },
    client_secret: `${id}_secret_standin`,
    amount,
    amount_capturable: 0,
    amount_received: 0,
    status: 'requires_payment_method',
    cancellation_reason: null,
    latest_charge: null,
  };
}

function confirm(intent: StandInIntent, card: string | undefined): Answer {
  const charge = (status: StandInCharge['status']): StandInCharge => ({
    id: intent.id.replace('pi', 'ch'),
    object: 'charge',
    amount: intent.amount,
    status,
  });
  if (card === cards.good) {
    const amount_capturable = intent.amount;
    Object.assign(intent, {
      status: 'requires_capture',
      amount_capturable,
      latest_charge: charge('succeeded'),
    });
    return ok(shown(intent));
  }
  if (card === cards.processing) intent.status = 'processing';
  if (card === cards.actionRequired) intent.status = 'requires_action';
  if (card === cards.processing || card === cards.actionRequired) return ok(shown(intent));
  intent.latest_charge = charge('failed');
  const code = card === cards.authenticationRequired ? 'authentication_required' : 'card_declined';
  return failed(402, { type: 'card_error', code, payment_intent: shown(intent) });
}

function capture(intent: StandInIntent, params: SeenRequest['params']): Answer {
  if (intent.status !== 'requires_capture') return unexpectedState(intent);
  const amount = Number(params.amount_to_capture ?? intent.amount_capturable);
  if (amount > intent.amount_capturable) {
    return invalid('The amount is larger than what is held', { code: 'amount_too_large' });
  }
  Object.assign(intent, {
    status: 'succeeded',
    amount_received: amount,
    amount_capturable: 0,
  });
  return ok(shown(intent));
}

function cancel(intent: StandInIntent, charge: boolean): Answer {
  if (['succeeded', 'canceled', 'processing'].includes(intent.status)) return unexpectedState(intent);
  Object.assign(intent, { status: 'canceled', amount_capturable: 0 });
  return ok(shown(intent, charge));
}

/** The newest first, a page at a time. */
function list({ intents, customers }: State, params: SeenRequest['params']): Answer {
  const { customer, starting_after: after } = params;
  if (customer !== undefined && !customers.has(customer)) return missing('customer', customer, 400);
  const since = Number(params['created[gte]'] ?? 0);
  const isOf = (intent: StandInIntent) => customer === undefined || intent.customer === customer;
  const theirs = intents.filter((intent) => isOf(intent) && intent.created >= since);
  const newest = theirs.toReversed();
  const from = after === undefined ? 0 : newest.findIndex(({ id }) => id === after) + 1;
  const size = Number(params.limit ?? 10);
  const data = newest.slice(from, from + size);
  const charge = params['expand[0]'] === 'data.latest_charge';
  const has_more = newest.length > from + size;
  return ok({ object: 'list', data: data.map((intent) => shown(intent, charge)), has_more, url: '' });
}

/** A PaymentIntent as an answer shows it: the charge by its id unless it was asked for. */
function shown(intent: StandInIntent, withCharge = false): object {
  return { ...intent, latest_charge: withCharge ? intent.latest_charge : (intent.latest_charge?.id ?? null) };
}

const ok = (body: object): Answer => ({ status: 200, body });
const failed = (status: number, error: object, saved = true): Answer => ({ status, body: { error }, saved });

function invalid(message: string, more: object = {}, saved = true): Answer {
  return failed(400, { type: 'invalid_request_error', message, ...more }, saved);
}

function missing(param: string, id: string, status: number): Answer {
  const message = `No such ${param}: '${id}'`;
  return failed(status, { type: 'invalid_request_error', code: 'resource_missing', param, message });
}

function unexpectedState(intent: StandInIntent): Answer {
  return invalid(`The status is ${intent.status}`, {
    code: 'payment_intent_unexpected_state',
    payment_intent: shown(intent),
  });
}

function refusedBy(status: number): Answer {
  return failed(status, { type: 'api_error', message: 'No, sk_test_standin.' }, false);
}

const serverError = failed(500, { type: 'api_error', message: 'Something went wrong' });
const keyInUse = failed(409, { type: 'idempotency_error', code: 'idempotency_key_in_use' }, false);
const keyInOtherUse = failed(
  400,
  {
    type: 'idempotency_error',
    message:
      'Keys for idempotent requests can only be used with the same parameters they were first used with.',
  },
  false,
);
