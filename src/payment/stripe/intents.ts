import type Stripe from 'stripe';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { PaymentOrder } from '../institution.ts';
import { isKeyInOtherUse, isRefusedByStripe, isSavedAnswer } from './client.ts';
import { holdKey } from './notification.ts';
import type { StripeBuyer, StripeParties } from './parties.ts';
import { snapshotOf } from './snapshot.ts';

/** The PaymentIntents of orders, of which there is one for an order at most. */
export interface Intents {
  /** The PaymentIntent of an order, by its reference or else among those of the buyer. */
  find(order: PaymentOrder): Promise<Stripe.PaymentIntent | undefined>;
  /** A PaymentIntent as it is now. */
  retrieve(intentId: string): Promise<Stripe.PaymentIntent>;
  /** Makes the PaymentIntent of an order and has the amount authorised. Rejects with Stripe's own error. */
  authorise(order: PaymentOrder): Promise<Stripe.PaymentIntent>;
  /** Captures; where the money then stands, whether or not that was why. */
  capture(intentId: string, amount: bigint, idempotencyKey: string): Promise<PaymentSnapshot>;
  /** Cancels; where the money then stands, whether or not that was why. */
  cancel(intentId: string, idempotencyKey: string): Promise<PaymentSnapshot>;
  /** Uses up the key of an order that has no PaymentIntent, so that none can be made for it any more. */
  useUpKey(order: PaymentOrder, cancelKey: string): Promise<PaymentSnapshot>;
}

/** How far Stripe's clock may be behind ours, in seconds: a look-up begins that much before the order. */
const clockDifferenceS = 600;
/** PaymentIntents of a buyer that a look-up goes through before it gives up, and how many come at a time. */
const lookUpLimits = { intents: 2_000, perPage: 100 } as const;
/** What an unconfirmed PaymentIntent is made over: within Stripe's bounds in every currency. */
const unconfirmedAmount = 1_000_000;
/** The charge tells what a cancelled PaymentIntent was before. */
const withCharge = { expand: ['latest_charge'] };

/** Where the money of a PaymentIntent stands; one that holds none and still could is as good as none. */
export function snapshotOrAbsent(intent: Stripe.PaymentIntent): PaymentSnapshot {
  return snapshotOf(intent) ?? { status: 'ABSENT' };
}

/** Access to the PaymentIntents of the parties as they are known then, all calls being made inside StripeClient.call. */
export function createIntents({ paymentIntents }: Stripe, parties: () => StripeParties): Intents {
  const buyerOf = ({ buyerId }: PaymentOrder): StripeBuyer => known(parties().buyers.get(buyerId), 'buyer');
  const sellerOf = ({ sellerId }: PaymentOrder): string => known(parties().sellers.get(sellerId), 'seller');
  const retrieve = (intentId: string) => paymentIntents.retrieve(intentId, withCharge);

  async function find(order: PaymentOrder): Promise<Stripe.PaymentIntent | undefined> {
    if (order.reference !== undefined) return retrieve(order.reference);
    // Stripe's search would find the metadata itself, but only some time after it was written.
    const made = paymentIntents.list({
      customer: buyerOf(order).customer,
      created: { gte: Math.floor(order.openedAtMs / 1000) - clockDifferenceS },
      limit: lookUpLimits.perPage,
      expand: ['data.latest_charge'],
    });
    let seen = 0;
    for await (const intent of made) {
      if (intent.metadata[holdKey] === order.holdId) return intent;
      seen += 1;
      if (seen >= lookUpLimits.intents) throw new Error(`Stripe: more than ${seen} payments since the order`);
    }
    return undefined;
  }

  /** The payment after an action, or, where Stripe refuses that, as it is. */
  async function afterwards(
    intentId: string,
    action: Promise<Stripe.PaymentIntent>,
  ): Promise<PaymentSnapshot> {
    try {
      return snapshotOrAbsent(await action);
    } catch (error) {
      if (!isRefusedByStripe(error)) throw error;
      return snapshotOrAbsent(await retrieve(intentId));
    }
  }

  const cancel = (intentId: string, idempotencyKey: string) =>
    afterwards(intentId, paymentIntents.cancel(intentId, withCharge, { idempotencyKey }));

  // The amount, so that no more is paid out than was agreed, should the authorisation have been changed at Stripe.
  const capture = (intentId: string, amount: bigint, idempotencyKey: string) => {
    const params = { amount_to_capture: Number(amount) };
    return afterwards(intentId, paymentIntents.capture(intentId, params, { idempotencyKey }));
  };

  /** Whatever is made for an order is made under one key, and found again by these parameters. */
  const make = (order: PaymentOrder, params: Pick<Stripe.PaymentIntentCreateParams, 'amount' | 'confirm'>) =>
    paymentIntents.create(
      {
        ...params,
        currency: order.currency.toLowerCase(),
        customer: buyerOf(order).customer,
        // Without this, confirming needs a return_url for the ways to pay that lead the buyer elsewhere.
        automatic_payment_methods: { enabled: true, allow_redirects: 'never' },
        capture_method: 'manual',
        metadata: { [holdKey]: order.holdId, artseal_escrow: order.escrowId },
      },
      { idempotencyKey: order.holdId },
    );

  async function authorise(order: PaymentOrder): Promise<Stripe.PaymentIntent> {
    const params = {
      amount: Number(order.amount),
      payment_method: buyerOf(order).paymentMethod,
      confirm: true,
      off_session: true,
      transfer_data: { destination: sellerOf(order) },
    };
    const intent = await make(order, params);
    // A saved answer is one of the past: the money may have gone on since.
    return isSavedAnswer(intent.lastResponse.headers) ? retrieve(intent.id) : intent;
  }

  async function useUpKey(order: PaymentOrder, cancelKey: string): Promise<PaymentSnapshot> {
    try {
      const unconfirmed = await make(order, { amount: unconfirmedAmount, confirm: false });
      return await cancel(unconfirmed.id, cancelKey);
    } catch (error) {
      if (!isKeyInOtherUse(error)) throw error;
      // The FREEZE was there first, but need not have left anything that can be cancelled.
      const intent = await find(order);
      if (intent === undefined) throw error;
      return cancel(intent.id, cancelKey);
    }
  }

  return { find, retrieve, authorise, capture, cancel, useUpKey };
}

/** A party that was in the file when the order was opened, and need not be there any more. */
function known<T>(party: T | undefined, role: string): T {
  if (party === undefined) throw new Error(`The ${role} of the order is no longer in the file of parties.`);
  return party;
}
