import type Stripe from 'stripe';
import { isPage } from '../../domain/address.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { declinedFor } from './declined.ts';

/** Where a PaymentIntent is. */
export interface IntentPlace {
  /** The seller's connected account. */
  readonly account: string;
  readonly intentId: string;
}

/** Returns `acct_…/pi_…`, which becomes PaymentSnapshot.reference. */
export function referenceOf({ account, intentId }: IntentPlace): string {
  return `${account}/${intentId}`;
}

/** Reads what `referenceOf` wrote. */
export function placeOf(reference: string): IntentPlace {
  const [account = '', intentId = ''] = reference.split('/');
  return { account, intentId };
}

/** A PaymentIntent with its latest_charge expanded, and where it is. */
export interface FoundIntent {
  readonly intent: Stripe.PaymentIntent;
  readonly place: IntentPlace;
}

/** Cancellation reasons of authorisations that were not captured in time. */
const lapseReasons: readonly (string | null)[] = ['automatic', 'expired'];

/**
 * Final statuses of a dispute. Only after `lost` the buyer has the money: `prevented` comes with a refund on the charge, and a
 * closed `warning` was an inquiry that became no dispute.
 */
const ended: readonly string[] = ['won', 'lost', 'warning_closed', 'prevented'];

/** Returns whether the buyer ever disputed the charge. It stays true after the dispute. */
export function wasDisputed({ intent }: FoundIntent): boolean {
  return intent.status === 'succeeded' && chargeOf(intent)?.disputed === true;
}

/**
 * Returns where the money of a PaymentIntent is. Undefined if no money is reserved but still could be: the PaymentIntent waits
 * for a payment method, a confirmation, or a buyer who has no page to act on.
 *
 * `disputes` are those of its charge. Throws if the status is `processing` or unknown, because it does not say where the
 * money is.
 */
export function snapshotOf(
  { intent, place }: FoundIntent,
  disputes: readonly Stripe.Dispute[],
): PaymentSnapshot | undefined {
  const currency = intent.currency.toUpperCase();
  const facts = { currency, reference: referenceOf(place) };
  switch (intent.status) {
    case 'requires_capture': {
      const holdExpiresAtMs = captureBeforeMs(intent);
      return { status: 'HELD', amount: BigInt(intent.amount_capturable), holdExpiresAtMs, ...facts };
    }
    case 'succeeded':
      return { ...paidSnapshot(intent, disputes), ...facts };
    case 'canceled':
      return cancelledSnapshot(intent, facts);
    case 'requires_action': {
      const nextActionUrl = intent.next_action?.redirect_to_url?.url;
      if (!isPage(nextActionUrl)) return undefined;
      return { status: 'AWAITING_BUYER', nextActionUrl, reference: facts.reference };
    }
    case 'requires_payment_method':
    case 'requires_confirmation':
      return undefined;
    default:
      throw new Error(`Stripe: ${intent.id} is ${intent.status}, which does not say where the money is`);
  }
}

/** Returns where captured money is. The buyer has refunds and what a lost dispute took. */
function paidSnapshot(
  intent: Stripe.PaymentIntent,
  disputes: readonly Stripe.Dispute[],
): Pick<PaymentSnapshot, 'status' | 'amount'> {
  const received = intent.amount_received;
  if (disputes.some(({ status }) => !ended.includes(status)))
    return { status: 'DISPUTED', amount: BigInt(received) };
  const lost = disputes.filter(({ status }) => status === 'lost');
  // A dispute in another currency does not say what it took: assume all.
  const taken = lost.map(({ amount, currency }) => (currency === intent.currency ? amount : received));
  const kept = taken.reduce((left, amount) => left - amount, notRefunded(intent));
  if (kept <= 0) return { status: 'RETURNED', amount: BigInt(received) };
  if (kept < received) return { status: 'PARTLY_RETURNED', amount: BigInt(kept) };
  return { status: 'PAID_OUT', amount: BigInt(received) };
}

/** What was captured and not refunded. Stripe counts what was reserved beyond the capture as refunded. */
function notRefunded(intent: Stripe.PaymentIntent): number {
  const charge = chargeOf(intent);
  if (charge === undefined) throw new TypeError(`${intent.id} was captured without a charge`);
  return Math.min(charge.amount_captured, charge.amount - charge.amount_refunded);
}

function cancelledSnapshot(
  intent: Stripe.PaymentIntent,
  facts: Pick<PaymentSnapshot, 'currency' | 'reference'>,
): PaymentSnapshot {
  const charge = chargeOf(intent);
  // A declined charge remains as failed: there was never a hold.
  if (charge?.status !== 'succeeded') {
    const declined = intent.last_payment_error ? declinedFor(intent.last_payment_error) : undefined;
    return { status: 'VOID', reference: facts.reference, declined };
  }
  const status = lapseReasons.includes(intent.cancellation_reason) ? 'LAPSED' : 'RETURNED';
  return { status, amount: BigInt(charge.amount), ...facts };
}

function captureBeforeMs(intent: Stripe.PaymentIntent): number | undefined {
  const captureBeforeS = chargeOf(intent)?.payment_method_details?.card?.capture_before;
  return captureBeforeS === undefined ? undefined : captureBeforeS * 1000;
}

function chargeOf({ id, latest_charge: charge }: Stripe.PaymentIntent): Stripe.Charge | undefined {
  if (typeof charge === 'string') throw new TypeError(`${id} came without its latest_charge`);
  return charge ?? undefined;
}
