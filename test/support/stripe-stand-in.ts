import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import Stripe from 'stripe';
import {
  type ArrivedRequest,
  type RequestFault,
  type Answer as StandInAnswer,
  startStandIn,
} from './stand-in.ts';

/** Cards by the result of their authorisation; any other payment method is unknown. */
export const cards = {
  good: 'pm_card_visa',
  declined: 'pm_card_chargeDeclined',
  insufficientFunds: 'pm_card_chargeDeclinedInsufficientFunds',
  stolen: 'pm_card_chargeDeclinedStolenCard',
  /** Its issuer wants the buyer to confirm: an error if the buyer cannot be asked, otherwise a page. */
  authenticationRequired: 'pm_card_authenticationRequired',
  /** Confirmed without an error, but the buyer has to do something, in a browser with Stripe's own script. */
  actionRequired: 'pm_card_actionRequired',
  processing: 'pm_card_processing',
} as const;

/** Smallest and largest accepted amount, in minor units of any currency. */
const amounts = { min: 50, max: 99_999_999 } as const;

/** What goes wrong with a request. */
export type Fault =
  | RequestFault
  /** Rejected before anything else is checked; nothing is saved: 401, 403, 429, 503. */
  | { readonly status: number; readonly code?: string };

/** One request as it arrived, with the parameters of its query or body. */
export interface SeenRequest extends Omit<ArrivedRequest, 'text' | 'query'> {
  readonly params: Readonly<Record<string, string>>;
}

/** A PaymentIntent; the members that this project reads, as Stripe spells them, and its account. */
type StandInIntent = ReturnType<typeof unconfirmed>;

type StandInCharge = ReturnType<typeof chargeOf>;

interface StandInDispute {
  readonly id: string;
  readonly object: 'dispute';
  readonly payment_intent: string;
  readonly amount: number;
  currency: string;
  status: string;
}

/** Stripe as far as this project uses it, over HTTP and with a memory. */
export type StripeStandIn = Awaited<ReturnType<typeof startStripeStandIn>>;

interface Answer extends StandInAnswer {
  /** Whether endpoint execution had begun, so that the answer is saved under the key. */
  readonly saved?: boolean;
}

interface UsedKey {
  readonly fingerprint: string;
  answer: Answer | undefined;
}

interface State {
  url: string;
  readonly intents: StandInIntent[];
  readonly disputes: StandInDispute[];
  readonly customers: Set<string>;
  readonly accounts: Set<string>;
  /** Clones of cards by their id, of which each can be charged once. */
  readonly clones: Map<string, Clone>;
  readonly keys: Map<string, UsedKey>;
}

interface Clone {
  readonly account: string;
  readonly card: string;
  isUsed: boolean;
}

const currencies: readonly string[] = ['cny', 'usd', 'eur', 'jpy', 'bhd'];
/** How long an authorisation is kept, in seconds. */
const keptS = 7 * 24 * 3600;

/** Starts a stand-in, closed after the test. */
export async function startStripeStandIn(test: Pick<TestContext, 'after'>) {
  const [apiKey, webhookSecret] = ['sk_test_standin', 'whsec_standin'];
  let isRevoked = false;
  const world = {
    /** The PaymentIntents, the newest last; a test may change them, as the dashboard would. */
    intents: [] as StandInIntent[],
    /** Customers there are; a customer not among them is unknown. */
    customers: new Set(['cus_1', 'cus_2']),
    /** Connected accounts that let the platform act for them. */
    accounts: new Set(['acct_1', 'acct_2']),
  };
  const state: State = { ...world, url: '', disputes: [], clones: new Map(), keys: new Map() };

  async function respond(seen: SeenRequest, fault: Fault | undefined): Promise<StandInAnswer> {
    if (typeof fault === 'object' && 'status' in fault)
      return withHeaders(refusedBy(fault.status, fault.code));
    if (isRevoked || !isAuthorised(seen, apiKey)) return withHeaders(refusedBy(401));
    const { answer, replayed } = await idempotently(state, seen, fault);
    return withHeaders(answer, replayed);
  }

  const standIn = await startStandIn<SeenRequest, Fault>(test, seenRequest, respond);
  state.url = standIn.url;

  /** Returns a PaymentIntent with this status. */
  const intentWith = (status: string, intentId: string): StandInIntent => {
    const intent = state.intents.find(({ id }) => id === intentId);
    if (intent?.status !== status) throw new Error(`${intentId} is not ${status}`);
    return intent;
  };
  const captured = (intentId: string): StandInCharge =>
    intentWith('succeeded', intentId).latest_charge ?? assert.fail();
  const sign = (payload: string, timestamp: number) =>
    Stripe.webhooks.generateTestHeaderString({ payload, timestamp, secret: webhookSecret });
  return {
    ...{ ...standIn, apiKey, webhookSecret },
    /** The settings of a deployment whose provider it is. */
    settings: {
      ARTSEAL_PAYMENT_PROVIDER: 'stripe',
      ARTSEAL_STRIPE_API_KEY: apiKey,
      ARTSEAL_STRIPE_WEBHOOK_SECRET: webhookSecret,
      ARTSEAL_STRIPE_URL: standIn.url,
    },
    ...world,
    /** Cancels an authorisation that has run out. */
    expire: (intentId: string) => {
      const expired = { status: 'canceled', amount_capturable: 0, cancellation_reason: 'automatic' };
      Object.assign(intentWith('requires_capture', intentId), expired);
    },
    /** Captures what is authorised and sets metadata, as the seller can in a full dashboard. */
    captureAsSeller: (intentId: string, metadata: Readonly<Record<string, string>>) => {
      const params = Object.entries(metadata).map(([key, value]) => [`metadata[${key}]`, value]);
      capture(intentWith('requires_capture', intentId), Object.fromEntries(params));
    },
    /** Gives the buyer back an amount of what was captured. */
    refund: (intentId: string, amount: number) => {
      const charge = captured(intentId);
      charge.amount_refunded += amount;
      charge.refunded = charge.amount_refunded === charge.amount;
    },
    /** Has the buyer contest an amount of what was captured; a test may change the status of the dispute. */
    dispute: (intentId: string, amount: number): StandInDispute => {
      captured(intentId).disputed = true;
      const id = `dp_${state.disputes.length + 1}`;
      const { currency } = intentWith('succeeded', intentId);
      const status = 'needs_response';
      state.disputes.push({ id, object: 'dispute', payment_intent: intentId, amount, currency, status });
      return state.disputes.at(-1) as StandInDispute;
    },
    /** The buyer goes to the address of the next action, and confirms there or does not. */
    authenticate: (intentId: string, isConfirmed: boolean) => {
      const intent = intentWith('requires_action', intentId);
      intent.next_action = null;
      if (isConfirmed) authorised(intent);
      else declined(intent, 'payment_intent_authentication_failure', undefined);
    },
    /** Rejects every request for its key from now on, or accepts it again. */
    revokeKey: (revoked: boolean) => {
      isRevoked = revoked;
    },
    /** Forgets all idempotency keys, as Stripe does after 24 hours or more. */
    forgetKeys: () => state.keys.clear(),
    /** Returns the Stripe-Signature of a body. */
    sign,
    /** Body and Stripe-Signature of an event, as an endpoint for connected accounts sends it; `more` are members of it. */
    event: (id: string, type: string, object: object, signedAtS: number, more?: object) => {
      const kind = { object: 'event', api_version: '2026-10-28.endive', livemode: false };
      const event = { id, ...kind, account: 'acct_1', type, data: { object }, ...more };
      const text = JSON.stringify(event, null, 2);
      return { body: Buffer.from(text), signature: sign(text, signedAtS) };
    },
  };
}

function seenRequest({ text, query, ...arrived }: ArrivedRequest): SeenRequest {
  const params = Object.fromEntries(arrived.method === 'POST' ? new URLSearchParams(text) : query);
  return { ...arrived, params };
}

function isAuthorised({ headers }: SeenRequest, apiKey: string): boolean {
  const basic = `Basic ${Buffer.from(`${apiKey}:`).toString('base64')}`;
  return [`Bearer ${apiKey}`, basic].includes(headers.authorization ?? '');
}

function withHeaders(answer: Answer, replayed = false): StandInAnswer {
  const headers = {
    'request-id': 'req_standin',
    // In words for developers, as sandboxes get it now and then.
    'stripe-notice': 'A notice of the stand-in.',
    ...(replayed ? { 'idempotent-replayed': 'true' } : {}),
  };
  return { ...answer, headers };
}

/** Carries a request out unless its key says that it has been, as Stripe's idempotency layer does. */
async function idempotently(
  state: State,
  seen: SeenRequest,
  fault: Fault | undefined,
): Promise<{ answer: Answer; replayed?: boolean }> {
  const key = seen.method === 'POST' ? seen.idempotencyKey : undefined;
  const fingerprint = JSON.stringify([seen.path, seen.params, seen.headers['stripe-account']]);
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

function carryOut(state: State, { method, path, params, headers }: SeenRequest): Answer {
  const header = headers['stripe-account'];
  const account = typeof header === 'string' ? header : undefined;
  if (account !== undefined && !state.accounts.has(account)) return withoutAccess(account);
  const [, intentId = '', action = ''] = /^\/v1\/payment_intents\/(\w+)(\/\w+)?$/.exec(path) ?? [];
  if (intentId === '') {
    const serve = endpoints[`${method} ${path}`];
    return serve?.(state, params, account) ?? invalid(`no such endpoint: ${method} ${path}`, {}, false);
  }
  const intent = state.intents.find((one) => one.id === intentId && one.account === account);
  if (intent === undefined) return missing('intent', intentId, 404);
  switch (`${method} ${action}`) {
    case 'GET ':
      return ok(shown(intent, isExpanded(params)));
    case 'POST /capture':
      return capture(intent, params);
    case 'POST /cancel':
      return cancel(intent, isExpanded(params));
    default:
      return invalid(`no such endpoint: ${method} ${path}`, {}, false);
  }
}

type Params = SeenRequest['params'];

/** What is not about one PaymentIntent. Stripe's own stand-in (stripe-mock) knows which parameters there are. */
const endpoints: Readonly<
  Record<string, (state: State, params: Params, account: string | undefined) => Answer>
> = {
  'POST /v1/payment_methods': clone,
  'POST /v1/payment_intents': create,
  'GET /v1/payment_intents': list,
  'GET /v1/disputes': ({ disputes }, params) => {
    const data = disputes.filter(({ payment_intent }) => payment_intent === params.payment_intent);
    return ok({ object: 'list', data, has_more: false, url: '' });
  },
};

const isExpanded = (params: Params) => params['expand[0]'] === 'latest_charge';

/** Makes a copy of a buyer's card that one connected account can charge. */
function clone(state: State, params: Params, account: string | undefined): Answer {
  const { customer = '', payment_method: card = '' } = params;
  if (account === undefined) return invalid('A card is cloned onto a connected account');
  if (!state.customers.has(customer)) return missing('customer', customer, 400);
  if (!isCard(card)) return missing('payment_method', card, 400);
  const id = `pm_clone${state.clones.size + 1}`;
  state.clones.set(id, { account, card, isUsed: false });
  return ok({ id, object: 'payment_method', type: 'card', customer: null });
}

const isCard = (card: string) => Object.values(cards).some((known) => known === card);

function create(state: State, params: Params, account: string | undefined): Answer {
  const amount = Number(params.amount);
  const { currency = '', confirm } = params;
  if (account === undefined) return invalid('A PaymentIntent is created on a connected account');
  if (!Number.isSafeInteger(amount)) return invalid('Invalid integer', { param: 'amount' }, false);
  if (!currencies.includes(currency))
    return invalid(`Invalid currency: ${currency}`, { param: 'currency' }, false);
  if (params.off_session !== undefined && confirm !== 'true')
    return invalid('off_session is for confirm=true');
  if (amount < amounts.min) return invalid('Too small', { code: 'amount_too_small', param: 'amount' });
  if (amount > amounts.max) return invalid('Too large', { code: 'amount_too_large', param: 'amount' });
  const card = chargeable(state, params.payment_method, account);
  if (typeof card === 'object') return card;
  const intent = unconfirmed(state.intents.length + 1, params, amount, account);
  state.intents.push(intent);
  return confirm === 'true' ? confirmed(state, intent, card, params) : ok(shown(intent, isExpanded(params)));
}

/** The card that a payment method stands for on an account, or why it cannot be charged there. */
function chargeable(
  { clones }: State,
  paymentMethod: string | undefined,
  account: string,
): string | undefined | Answer {
  if (paymentMethod === undefined) return undefined;
  const found = clones.get(paymentMethod);
  if (found?.account !== account) return missing('payment_method', paymentMethod, 400);
  if (found.isUsed) return invalid('The PaymentMethod was used without a Customer and may not be used again');
  found.isUsed = true;
  return found.card;
}

function unconfirmed(number: number, params: Params, amount: number, account: string) {
  const id = `pi_${number}`;
  return {
    /** Not part of responses. */
    account,
    id,
    object: 'payment_intent',
    created: nowS(),
    currency: params.currency ?? '',
    metadata: metadataOf(params),
    client_secret: `${id}_secret_standin`,
    next_action: null as object | null,
    last_payment_error: null as object | null,
    amount,
    amount_capturable: 0,
    amount_received: 0,
    status: 'requires_payment_method',
    cancellation_reason: null as string | null,
    latest_charge: null as StandInCharge | null,
  };
}

const nowS = () => Math.floor(Date.now() / 1000);

function confirmed(state: State, intent: StandInIntent, card: string | undefined, params: Params): Answer {
  const answer = () => ok(shown(intent, isExpanded(params)));
  const { return_url } = params;
  if (card === cards.good) {
    authorised(intent);
    return answer();
  }
  if (card === cards.processing) intent.status = 'processing';
  const asks = card === cards.authenticationRequired && return_url !== undefined;
  if (asks || card === cards.actionRequired) {
    const redirect_to_url = { url: `${state.url}/3ds/${intent.id}`, return_url };
    intent.next_action = asks ? { type: 'redirect_to_url', redirect_to_url } : { type: 'use_stripe_sdk' };
    intent.status = 'requires_action';
  }
  if (intent.status !== 'requires_payment_method') return answer();
  const [code, decline_code] = declines[card ?? ''] ?? ['card_declined', 'generic_decline'];
  declined(intent, code, decline_code);
  return failed(402, { ...intent.last_payment_error, payment_intent: shown(intent) });
}

/** Code and decline_code of cards that are declined. */
const declines: Readonly<Record<string, readonly [string, string | undefined]>> = {
  [cards.authenticationRequired]: ['authentication_required', 'authentication_required'],
  [cards.insufficientFunds]: ['card_declined', 'insufficient_funds'],
  [cards.stolen]: ['card_declined', 'stolen_card'],
};

function chargeOf(
  { id, amount, created }: { id: string; amount: number; created: number },
  status: 'succeeded' | 'failed',
) {
  const capture_before = created + keptS;
  return {
    id: id.replace('pi', 'ch'),
    object: 'charge',
    amount,
    status,
    payment_intent: id,
    payment_method_details: { card: status === 'succeeded' ? { capture_before } : {} },
    amount_captured: 0,
    amount_refunded: 0,
    refunded: false,
    disputed: false,
  };
}

function authorised(intent: StandInIntent): void {
  const latest_charge = chargeOf(intent, 'succeeded');
  Object.assign(intent, {
    status: 'requires_capture',
    amount_capturable: intent.amount,
    latest_charge,
  });
}

function declined(intent: StandInIntent, code: string, decline_code: string | undefined): void {
  const message = `The card of cus_1, 4242 4242 4242 4242, was refused: ${intent.client_secret}.`;
  const last_payment_error = { type: 'card_error', code, decline_code, message };
  const latest_charge = chargeOf(intent, 'failed');
  Object.assign(intent, { status: 'requires_payment_method', last_payment_error, latest_charge });
}

function metadataOf(params: Params): Record<string, string> {
  const found = Object.entries(params).flatMap(([name, value]) => {
    const [, key] = /^metadata\[(\w+)\]$/.exec(name) ?? [];
    return key === undefined ? [] : [[key, String(value)] as const];
  });
  return Object.fromEntries(found);
}

function capture(intent: StandInIntent, params: Params): Answer {
  if (intent.status !== 'requires_capture' || intent.latest_charge === null) return unexpectedState(intent);
  const amount = Number(params.amount_to_capture ?? intent.amount_capturable);
  if (amount > intent.amount_capturable) {
    return invalid('The amount is larger than what is held', { code: 'amount_too_large' });
  }
  const metadata = { ...intent.metadata, ...metadataOf(params) };
  Object.assign(intent, { status: 'succeeded', amount_received: amount, amount_capturable: 0, metadata });
  intent.latest_charge.amount_captured = amount;
  intent.latest_charge.amount_refunded = intent.amount - amount;
  return ok(shown(intent, isExpanded(params)));
}

function cancel(intent: StandInIntent, charge: boolean): Answer {
  if (['succeeded', 'canceled', 'processing'].includes(intent.status)) return unexpectedState(intent);
  Object.assign(intent, { status: 'canceled', amount_capturable: 0, next_action: null });
  return ok(shown(intent, charge));
}

/** The newest first, a page at a time. */
function list({ intents }: State, params: Params, account: string | undefined): Answer {
  const { starting_after: after } = params;
  const since = Number(params['created[gte]'] ?? 0);
  const until = Number(params['created[lte]'] ?? Number.POSITIVE_INFINITY);
  const theirs = intents.filter(
    (intent) => intent.account === account && intent.created >= since && intent.created <= until,
  );
  const newest = theirs.toReversed();
  const from = after === undefined ? 0 : newest.findIndex(({ id }) => id === after) + 1;
  const size = Number(params.limit ?? 10);
  const data = newest.slice(from, from + size);
  const charge = params['expand[0]'] === 'data.latest_charge';
  const has_more = newest.length > from + size;
  return ok({ object: 'list', data: data.map((intent) => shown(intent, charge)), has_more, url: '' });
}

/** A PaymentIntent as an answer shows it: the charge by its id unless it was asked for. */
function shown({ account: _, latest_charge: charge, ...rest }: StandInIntent, withCharge = false): object {
  return { ...rest, latest_charge: withCharge ? charge : (charge?.id ?? null) };
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

function withoutAccess(account: string): Answer {
  const message = `The provided key does not have access to account '${account}'.`;
  return failed(403, { type: 'invalid_request_error', code: 'account_invalid', message }, false);
}

function refusedBy(status: number, code?: string): Answer {
  return failed(status, { type: 'api_error', code, message: 'No, sk_test_standin.' }, false);
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
