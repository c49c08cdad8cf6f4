import type Stripe from 'stripe';
import { isPage } from '../../domain/address.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import { declinedFor } from './declined.ts';
import { type IntentPlace, referenceOf } from './reference.ts';

/** A PaymentIntent with its latest_charge expanded, and where it is. */
export interface FoundIntent {
  readonly intent: Stripe.PaymentIntent;
  readonly place: IntentPlace;
}

/** The reasons that Stripe gives when it cancels by itself what was not captured in time. */
const ranOut: readonly (string | null)[] = ['automatic', 'expired'];

/**
 * Statuses of a dispute that has ended. Of these, the money is the buyer's after `lost` alone: `prevented` comes with a
 * refund, which the charge tells. A closed `warning` was a question of the card issuer that became no dispute.
 */
const ended: readonly string[] = ['won', 'lost', 'warning_closed', 'prevented'];

/** Whether the buyer ever contested the charge of a PaymentIntent, which Stripe goes on saying after the dispute ended. */
export function wasDisputed({ intent }: FoundIntent): boolean {
  return intent.status === 'succeeded' && chargeOf(intent)?.disputed === true;
}

/**
 * What a PaymentIntent says of the money; undefined if no money is reserved but could still come to be: it waits
 * for a payment method or a confirmation, or for the buyer, who has no address to act at.
 *
 * `disputes` are those of its charge. Throws if the PaymentIntent is being processed or is in a status that is not known
 * here, since neither says anything of the money.
 */
export function snapshotOf(
  { intent, place }: FoundIntent,
  disputes: readonly Stripe.Dispute[],
): PaymentSnapshot | undefined {
  const currency = intent.currency.toUpperCase();
  const told = { currency, reference: referenceOf(place) };
  switch (intent.status) {
    case 'requires_capture': {
      const holdExpiresAtMs = captureBeforeMs(intent);
      return { status: 'HELD', amount: BigInt(intent.amount_capturable), holdExpiresAtMs, ...told };
    }
    case 'succeeded':
      return { ...paidSnapshot(intent, disputes), ...told };
    case 'canceled':
      return cancelledSnapshot(intent, told);
    case 'requires_action': {
      const nextActionUrl = intent.next_action?.redirect_to_url?.url;
      if (!isPage(nextActionUrl)) return undefined;
      return { status: 'AWAITING_BUYER', nextActionUrl, reference: told.reference };
    }
    case 'requires_payment_method':
    case 'requires_confirmation':
      return undefined;
    default:
      throw new Error(`Stripe: ${intent.id} is ${intent.status}, which does not say where the money is`);
  }
}

/** Where the money is that was captured: what was refunded since, and what a lost dispute took, has the buyer. */
function paidSnapshot(
  intent: Stripe.PaymentIntent,
  disputes: readonly Stripe.Dispute[],
): Pick<PaymentSnapshot, 'status' | 'amount'> {
  const received = intent.amount_received;
  if (disputes.some(({ status }) => !ended.includes(status)))
    return { status: 'DISPUTED', amount: BigInt(received) };
  const lost = disputes.filter(({ status }) => status === 'lost');
  // What a dispute over another currency took is not known: all of it is as near as can be.
  const taken = lost.map(({ amount, currency }) => (currency === intent.currency ? amount : received));
  const kept = taken.reduce((left, amount) => left - amount, notRefunded(intent));
  if (kept <= 0) return { status: 'RETURNED', amount: BigInt(received) };
  if (kept < received) return { status: 'PARTLY_RETURNED', amount: BigInt(kept) };
  return { status: 'PAID_OUT', amount: BigInt(received) };
}

/** What was captured and not refunded. Of what was reserved beyond that, Stripe speaks as of a refund. */
function notRefunded(intent: Stripe.PaymentIntent): number {
  const charge = chargeOf(intent);
  if (charge === undefined) throw new TypeError(`${intent.id} was captured without a charge`);
  return Math.min(charge.amount_captured, charge.amount - charge.amount_refunded);
}

function cancelledSnapshot(
  intent: Stripe.PaymentIntent,
  told: Pick<PaymentSnapshot, 'currency' | 'reference'>,
): PaymentSnapshot {
  const charge = chargeOf(intent);
  // A declined charge is kept too, as failed: there was never a hold.
  if (charge?.status !== 'succeeded') {
    const declined = intent.last_payment_error ? declinedFor(intent.last_payment_error) : undefined;
    return { status: 'VOID', reference: told.reference, declined };
  }
  const status = ranOut.includes(intent.cancellation_reason) ? 'LAPSED' : 'RETURNED';
  return { status, amount: BigInt(charge.amount), ...told };
}

function captureBeforeMs(intent: Stripe.PaymentIntent): number | undefined {
  const captureBeforeS = chargeOf(intent)?.payment_method_details?.card?.capture_before;
  return captureBeforeS === undefined ? undefined : captureBeforeS * 1000;
}

function chargeOf({ id, latest_charge: charge }: Stripe.PaymentIntent): Stripe.Charge | undefined {
  if (typeof charge === 'string') throw new TypeError(`${id} came without its latest_charge`);
  return charge ?? undefined;
}
