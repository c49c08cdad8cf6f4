import Stripe from 'stripe';
import { ApiError } from '../../domain/reason.ts';
import type { Notification, NotificationSubject, SentNotification } from '../provider.ts';
import { apiVersion, type StripeSettings } from './client.ts';
import { referenceOf } from './snapshot.ts';

/** The metadata that ties a PaymentIntent to its order. */
export const holdKey = 'artseal_hold';

/** How old a notification may be, in seconds. */
const toleranceS = 300;

/** Reads a notification; see PaymentProvider.readNotification. */
export function readStripeNotification(
  sent: SentNotification,
  { webhookSecret, apiKey }: Pick<StripeSettings, 'webhookSecret' | 'apiKey'>,
): Notification {
  checkSignature(sent, webhookSecret);
  const event = parse(sent.body);
  if (typeof event?.id !== 'string' || event.id === '') throw unreadable('has no id');
  checkKind(event, /^\w\w_live_/.test(apiKey));
  return { eventId: event.id, about: subjectOf(event) };
}

/** Rejects an event of a webhook endpoint that is not configured for this deployment. */
function checkKind({ object, livemode, api_version: version }: SentEvent, live: boolean): void {
  if (object === 'v2.core.event')
    throw unfit('is a thin event: let the webhook endpoint send snapshots (payload style "Snapshot")');
  if (typeof livemode === 'boolean' && livemode !== live) {
    const [its, ours] = live ? ['test', 'live'] : ['live', 'test'];
    throw unfit(`is of ${its} mode: let a webhook endpoint of ${ours} mode, that of the API key, send here`);
  }
  if (typeof version === 'string' && releaseOf(version) !== releaseOf(apiVersion))
    throw unfit(
      `has the shape of API version ${version.slice(0, 40)}: let the webhook endpoint use ${apiVersion}`,
    );
}

/** Returns the release of a version. Versions of one release only add to each other. */
const releaseOf = (version: string): string => version.slice(version.indexOf('.') + 1);

function unfit(why: string): ApiError {
  return new ApiError('VALIDATION_FAILED', `The notification ${why}.`);
}

/** Finds the order of an event by our metadata or by its PaymentIntent. */
function subjectOf({ data, account }: SentEvent): NotificationSubject | undefined {
  const { object, metadata, payment_intent: intentId } = data?.object ?? {};
  const holdId = metadata?.[holdKey];
  if (typeof holdId === 'string' && (object === 'payment_intent' || object === 'charge')) return { holdId };
  if (typeof intentId !== 'string' || typeof account !== 'string') return undefined;
  return { reference: referenceOf({ account, intentId }) };
}

function checkSignature({ headers, body, nowS }: SentNotification, secret: string): void {
  const [signature = '', ...more] = headers['stripe-signature'] ?? [];
  try {
    if (more.length > 0) throw new Error('repeated');
    // The library's constructEvent would also parse: a forged event and an unreadable one would give the same error.
    const { signature: check } = Stripe.webhooks;
    if (!check?.verifyHeader(body, signature, secret, toleranceS, undefined, nowS * 1000)) throw new Error();
  } catch (cause) {
    // The library throws errors of any kind for a malformed header.
    throw new ApiError(
      'SIGNATURE_INVALID',
      `Stripe-Signature must be the signature of this body, at most ${toleranceS} seconds old.`,
      {},
      { cause: cause instanceof Error ? new Error(cause.message) : undefined },
    );
  }
}

/** The members of an event that are read. Any of them may be missing. */
interface SentEvent {
  readonly id?: unknown;
  readonly object?: unknown;
  /** The connected account of the event. */
  readonly account?: unknown;
  readonly livemode?: unknown;
  readonly api_version?: unknown;
  readonly data?: { readonly object?: SentObject | null } | null;
}

interface SentObject {
  readonly object?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
  /** Member of a charge, a refund and a dispute. */
  readonly payment_intent?: unknown;
}

function parse(body: Uint8Array): SentEvent | null {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw unreadable('is not JSON');
  }
}

function unreadable(why: string): ApiError {
  return new ApiError('INVALID_JSON', `The notification ${why}.`);
}
