import type Stripe from 'stripe';
import type { PaymentSnapshot } from '../../domain/payment.ts';

/** The reasons that Stripe gives when it cancels by itself what was not captured in time. */
const ranOut: readonly (string | null)[] = ['automatic', 'expired'];

/**
 * What a PaymentIntent says of the money; undefined if no money is held but could still come to be: it waits
 * for a payment method, a confirmation or the buyer.
 *
 * One that is cancelled has to come with its latest_charge expanded. Throws if the PaymentIntent is being
 * processed or is in a status that is not known here, since neither says anything of the money.
 */
export function snapshotOf(intent: Stripe.PaymentIntent): PaymentSnapshot | undefined {
  const currency = intent.currency.toUpperCase();
  const told = { currency, reference: intent.id };
  switch (intent.status) {
    case 'requires_capture':
      return { status: 'HELD', amount: BigInt(intent.amount_capturable), ...told };
    case 'succeeded':
      return { status: 'PAID_OUT', amount: BigInt(intent.amount_received), ...told };
    case 'canceled':
      return cancelledSnapshot(intent, told);
    case 'requires_payment_method':
    case 'requires_confirmation':
    case 'requires_action':
      return undefined;
    default:
      throw new Error(`Stripe: ${intent.id} is ${intent.status}, which does not say where the money is`);
  }
}

function cancelledSnapshot(
  intent: Stripe.PaymentIntent,
  told: Pick<PaymentSnapshot, 'currency' | 'reference'>,
): PaymentSnapshot {
  const charge = intent.latest_charge;
  if (typeof charge === 'string') throw new TypeError(`${intent.id} came without its latest_charge`);
  // A declined charge is kept too, as failed: there was never a hold.
  if (charge === null || charge.status !== 'succeeded') return { status: 'VOID', reference: told.reference };
  const status = ranOut.includes(intent.cancellation_reason) ? 'LAPSED' : 'RETURNED';
  return { status, amount: BigInt(charge.amount), ...told };
}
