import type Stripe from 'stripe';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { PaymentOrder } from '../provider.ts';
import { isKeyInOtherUse, isRejectedByStripe, isSavedResponse, reasonOf } from './client.ts';
import { holdKey } from './notification.ts';
import { idsOf } from './parties.ts';
import { type IntentPlace, placeOf } from './reference.ts';
import { type FoundIntent, snapshotOf, wasDisputed } from './snapshot.ts';

/** The PaymentIntents of orders. An order has at most one. Call these functions inside StripeClient.call. */
export interface Intents extends FoundIntents {
  /** Creates the PaymentIntent of an order and authorises the amount. Rejects with Stripe's own error. */
  authorise(order: PaymentOrder): Promise<FoundIntent>;
  /** Captures. Resolves to the status after it, and the reason if Stripe declined. */
  capture(place: IntentPlace, amount: bigint): Promise<PaymentSnapshot>;
  /** Cancels. Resolves to the status after it, and the reason if Stripe declined. */
  cancel(place: IntentPlace): Promise<PaymentSnapshot>;
  /** Uses up the key of an order without a PaymentIntent, so that none can be created for it. */
  useUpKey(order: PaymentOrder): Promise<PaymentSnapshot>;
}

/** Reads PaymentIntents. */
interface FoundIntents {
  /** Returns the PaymentIntent of an order, by its reference or else among those of the seller. */
  find(order: PaymentOrder): Promise<FoundIntent | undefined>;
  retrieve(place: IntentPlace): Promise<FoundIntent>;
  /** Returns where the money is; undefined if none is reserved, but still could be. */
  snapshot(found: FoundIntent): Promise<PaymentSnapshot | undefined>;
}

/**
 * How long after its opening an order may get its PaymentIntent, in seconds: twice the longest wait for a buyer. It bounds
 * what a look-up has to read.
 */
const createdWithinS = 2 * 24 * 60 * 60;
/** How far Stripe's clock may lag ours, in seconds: a look-up begins that much before the order. */
const clockDifferenceS = 600;
/** PaymentIntents of a seller that a look-up reads before it fails, in total and per page. */
const lookUpLimits = { intents: 2_000, perPage: 100 } as const;
/** Disputes of one charge. A second one is rare. */
const disputesMax = 100;
/** The amount of an unconfirmed PaymentIntent: within Stripe's bounds in every currency. */
const unconfirmedAmount = 1_000_000;
/** The charge has the end of the hold, the refunds, and the status before a cancellation. */
const withCharge = { expand: ['latest_charge'] };

function createFoundIntents({ paymentIntents, disputes }: Stripe): FoundIntents {
  async function retrieve(place: IntentPlace): Promise<FoundIntent> {
    const options = { stripeAccount: place.account };
    return { place, intent: await paymentIntents.retrieve(place.intentId, withCharge, options) };
  }

  async function search(order: PaymentOrder): Promise<FoundIntent | undefined> {
    const { account } = idsOf(order);
    const openedAtS = order.openedAtMs / 1000;
    // Stripe's search could find the metadata itself, but only some time after they were written.
    const params = {
      created: {
        gte: Math.floor(openedAtS) - clockDifferenceS,
        lte: Math.ceil(openedAtS) + createdWithinS,
      },
      limit: lookUpLimits.perPage,
      expand: ['data.latest_charge'],
    };
    let seen = 0;
    for await (const intent of paymentIntents.list(params, { stripeAccount: account })) {
      if (intent.metadata[holdKey] === order.holdId)
        return { intent, place: { account, intentId: intent.id } };
      seen += 1;
      if (seen >= lookUpLimits.intents) throw new Error(`Stripe: more than ${seen} payments since the order`);
    }
    return undefined;
  }

  return {
    find: async (order) =>
      order.reference === undefined ? search(order) : retrieve(placeOf(order.reference)),
    retrieve,
    snapshot: async (found) => {
      if (!wasDisputed(found)) return snapshotOf(found, []);
      const { account: stripeAccount, intentId } = found.place;
      const params = { payment_intent: intentId, limit: disputesMax };
      const contested = await disputes.list(params, { stripeAccount });
      if (contested.has_more) throw new Error(`Stripe: more than ${disputesMax} disputes of ${intentId}`);
      return snapshotOf(found, contested.data);
    },
  };
}

/** With a `returnUrl`, a buyer can be asked to confirm a payment and then returns there. */
export function createIntents(stripe: Stripe, returnUrl: string | undefined): Intents {
  const { paymentIntents, paymentMethods } = stripe;
  const found = createFoundIntents(stripe);
  const { find, retrieve } = found;

  /** A PaymentIntent that holds no money is as good as none. */
  const snapshotOrAbsent = async (intent: FoundIntent): Promise<PaymentSnapshot> =>
    (await found.snapshot(intent)) ?? { status: 'ABSENT' };

  /** Returns the status after an action. If Stripe rejects the action: the present status, and the reason if it is HELD. */
  async function afterwards(
    place: IntentPlace,
    action: Promise<Stripe.PaymentIntent>,
  ): Promise<PaymentSnapshot> {
    try {
      return await snapshotOrAbsent({ intent: await action, place });
    } catch (error) {
      if (!isRejectedByStripe(error)) throw error;
      const payment = await snapshotOrAbsent(await retrieve(place));
      return payment.status === 'HELD' ? { ...payment, declined: reasonOf(error) } : payment;
    }
  }

  // Without an idempotency key: the status of the PaymentIntent prevents a second cancellation or capture, and a failure that
  // Stripe saved under a key would block both for a day.
  const cancel = ({ account, intentId }: IntentPlace) =>
    afterwards(
      { account, intentId },
      paymentIntents.cancel(intentId, withCharge, { stripeAccount: account }),
    );

  // With the amount: no more is paid out than was agreed, even if somebody changed the authorisation at Stripe.
  const capture = ({ account, intentId }: IntentPlace, amount: bigint) => {
    const params = { amount_to_capture: Number(amount), ...withCharge };
    return afterwards(
      { account, intentId },
      paymentIntents.capture(intentId, params, { stripeAccount: account }),
    );
  };

  /** Creates a PaymentIntent under the one key of an order. */
  const create = (order: PaymentOrder, params: Omit<Stripe.PaymentIntentCreateParams, 'currency'>) =>
    paymentIntents.create(
      {
        ...params,
        currency: order.currency.toLowerCase(),
        allowed_payment_method_types: ['card'],
        capture_method: 'manual',
        metadata: { [holdKey]: order.holdId, artseal_escrow: order.escrowId },
        ...withCharge,
      },
      { stripeAccount: idsOf(order).account, idempotencyKey: order.holdId },
    );

  /** Clones the buyer's card to the seller's account, where it can be charged once. A repetition returns the same clone. */
  async function cloneCard(order: PaymentOrder): Promise<string> {
    const { account: stripeAccount, customer, paymentMethod } = idsOf(order);
    const params = { customer, payment_method: paymentMethod };
    const options = { stripeAccount, idempotencyKey: `${order.holdId}:card` };
    return (await paymentMethods.create(params, options)).id;
  }

  return {
    ...found,
    cancel,
    capture,
    authorise: async (order) => {
      const intent = await create(order, {
        amount: Number(order.amount),
        payment_method: await cloneCard(order),
        confirm: true,
        ...(returnUrl === undefined ? { off_session: true } : { return_url: returnUrl }),
      });
      const place = { account: idsOf(order).account, intentId: intent.id };
      // The money may have moved since a saved response.
      return isSavedResponse(intent.lastResponse.headers) ? retrieve(place) : { intent, place };
    },
    useUpKey: async (order) => {
      try {
        const unconfirmed = await create(order, { amount: unconfirmedAmount });
        return await cancel({ account: idsOf(order).account, intentId: unconfirmed.id });
      } catch (error) {
        if (!isKeyInOtherUse(error)) throw error;
        // The FREEZE came first, but need not have left a PaymentIntent.
        const made = await find(order);
        if (made === undefined) throw error;
        return cancel(made.place);
      }
    },
  };
}
