import Stripe from 'stripe';
import { Refusal } from '../../domain/reason.ts';
import type { Notification, SentNotification } from '../institution.ts';

/** The metadata that ties a PaymentIntent to its order. */
export const holdKey = 'artseal_hold';

/** How old a notification may be, in seconds. */
const toleranceS = 300;

/** Reads a notification; see Institution.readNotification. */
export function readStripeNotification(sent: SentNotification, secret: string): Notification {
  checkSignature(sent, secret);
  const event = parse(sent.body);
  if (typeof event?.id !== 'string' || event.id === '') throw unreadable('has no id');
  const object = event.data?.object;
  const holdId = object?.object === 'payment_intent' ? object.metadata?.[holdKey] : undefined;
  return { eventId: event.id, about: typeof holdId === 'string' ? { holdId } : undefined };
}

function checkSignature({ headers, body, nowS }: SentNotification, secret: string): void {
  const [signature = '', ...more] = headers['stripe-signature'] ?? [];
  try {
    if (more.length > 0) throw new Error('repeated');
    // The library's constructEvent would also parse, and then not tell a forged event from an unreadable one.
    const { signature: check } = Stripe.webhooks;
    if (!check?.verifyHeader(body, signature, secret, toleranceS, undefined, nowS * 1000)) throw new Error();
  } catch (cause) {
    // A malformed header makes the library throw errors of any kind.
    throw new Refusal(
      'SIGNATURE_INVALID',
      `Stripe-Signature must be the signature of this body, at most ${toleranceS} seconds old.`,
      {},
      { cause: cause instanceof Error ? new Error(cause.message) : undefined },
    );
  }
}

/** What of an event is looked at; whatever else it is, a member that is not there reads as undefined. */
interface SentEvent {
  readonly id?: unknown;
  readonly data?: { readonly object?: SentObject | null } | null;
}

interface SentObject {
  readonly object?: unknown;
  readonly metadata?: Readonly<Record<string, unknown>> | null;
}

function parse(body: Uint8Array): SentEvent | null {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    throw unreadable('is not JSON');
  }
}

function unreadable(why: string): Refusal {
  return new Refusal('INVALID_JSON', `The notification ${why}.`);
}
