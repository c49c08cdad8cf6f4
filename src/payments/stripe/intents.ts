import type Stripe from 'stripe';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { PaymentOrder } from '../provider.ts';
import { isKeyInOtherUse, isRejectedByStripe, isSavedAnswer, reasonOf } from './client.ts';
import { holdKey } from './notification.ts';
import { namesOf } from './parties.ts';
import { type IntentPlace, placeOf } from './reference.ts';
import { type FoundIntent, snapshotOf, wasDisputed } from './snapshot.ts';

/** The PaymentIntents of orders, of which there is one for an order at most. */
export interface Intents {
  /** The PaymentIntent of an order, by its reference or else among those of the seller. */
  find(order: PaymentOrder): Promise<FoundIntent | undefined>;
  /** A PaymentIntent as it is now. */
  retrieve(place: IntentPlace): Promise<FoundIntent>;
  /** Makes the PaymentIntent of an order and has the amount authorised. Rejects with Stripe's own error. */
  authorise(order: PaymentOrder): Promise<FoundIntent>;
  /** Where the money of a PaymentIntent stands; undefined if none is reserved but could still come to be. */
  snapshot(found: FoundIntent): Promise<PaymentSnapshot | undefined>;
  /** Captures; where the money then stands, and why where Stripe declined to. */
  capture(place: IntentPlace, amount: bigint): Promise<PaymentSnapshot>;
  /** Cancels; where the money then stands, and why where Stripe declined to. */
  cancel(place: IntentPlace): Promise<PaymentSnapshot>;
  /** Uses up the key of an order that has no PaymentIntent, so that none can be made for it any more. */
  useUpKey(order: PaymentOrder): Promise<PaymentSnapshot>;
  /** The account that an order is charged on. */
  accountOf(order: PaymentOrder): string;
}

/**
 * How long after its opening an order may get its PaymentIntent, in seconds: twice the longest that it waits for a buyer. What
 * its seller was paid later does not stand in the way of a look-up.
 */
const madeWithinS = 2 * 24 * 60 * 60;
/** How far Stripe's clock may be behind ours, in seconds: a look-up begins that much before the order. */
const clockDifferenceS = 600;
/** PaymentIntents of a seller that a look-up goes through before it gives up, and how many come at a time. */
const lookUpLimits = { intents: 2_000, perPage: 100 } as const;
/** Disputes of one charge, of which there is hardly ever a second. */
const disputesMax = 100;
/** What an unconfirmed PaymentIntent is made over: within Stripe's bounds in every currency. */
const unconfirmedAmount = 1_000_000;
/** The charge tells until when a hold is kept, what was refunded, and what a cancelled PaymentIntent was before. */
const withCharge = { expand: ['latest_charge'] };

/** What of a request's options says whose account it is about. */
const on = (account: string | undefined): Stripe.RequestOptions =>
  account === undefined ? {} : { stripeAccount: account };

/**
 * Access to the PaymentIntents of orders, all calls being made inside StripeClient.call. With a `returnUrl` a buyer can be
 * asked to confirm, and comes back there.
 */
export function createIntents(
  { paymentIntents, paymentMethods, disputes }: Stripe,
  returnUrl: string | undefined,
): Intents {
  const accountOf = (order: PaymentOrder) => namesOf(order).account;

  async function retrieve(place: IntentPlace): Promise<FoundIntent> {
    return { place, intent: await paymentIntents.retrieve(place.intentId, withCharge, on(place.account)) };
  }

  async function find(order: PaymentOrder): Promise<FoundIntent | undefined> {
    if (order.reference !== undefined) return retrieve(placeOf(order.reference));
    const { account, customer } = namesOf(order);
    return (await findAmong(order, account, {})) ?? findOfBefore(order, customer);
  }

  /** The PaymentIntent of an order of before, when they were on the platform's own account. */
  async function findOfBefore(order: PaymentOrder, customer: string): Promise<FoundIntent | undefined> {
    try {
      return await findAmong(order, undefined, { customer });
    } catch (error) {
      // A customer that there is not has none.
      if (isRejectedByStripe(error) && error.code === 'resource_missing') return undefined;
      throw error;
    }
  }

  async function findAmong(
    order: PaymentOrder,
    account: string | undefined,
    whose: Pick<Stripe.PaymentIntentListParams, 'customer'>,
  ): Promise<FoundIntent | undefined> {
    const { openedAtMs } = order;
    // Stripe's search would find the metadata itself, but only some time after it was written.
    const params = {
      ...whose,
      created: {
        gte: Math.floor(openedAtMs / 1000) - clockDifferenceS,
        lte: Math.ceil(openedAtMs / 1000) + madeWithinS,
      },
      limit: lookUpLimits.perPage,
      expand: ['data.latest_charge'],
    };
    let seen = 0;
    for await (const intent of paymentIntents.list(params, on(account))) {
      if (intent.metadata[holdKey] === order.holdId)
        return { intent, place: { account, intentId: intent.id } };
      seen += 1;
      if (seen >= lookUpLimits.intents) throw new Error(`Stripe: more than ${seen} payments since the order`);
    }
    return undefined;
  }

  async function snapshot(found: FoundIntent): Promise<PaymentSnapshot | undefined> {
    if (!wasDisputed(found)) return snapshotOf(found, []);
    const { account, intentId } = found.place;
    const contested = await disputes.list({ payment_intent: intentId, limit: disputesMax }, on(account));
    if (contested.has_more) throw new Error(`Stripe: more than ${disputesMax} disputes of ${intentId}`);
    return snapshotOf(found, contested.data);
  }

  /** One that holds none and still could is as good as none. */
  const snapshotOrAbsent = async (found: FoundIntent): Promise<PaymentSnapshot> =>
    (await snapshot(found)) ?? { status: 'ABSENT' };

  /** The payment after an action, or, where Stripe refuses that, as it is, and why if it is still to be done. */
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

  // Without a key of ours the library gives each sending a new one: the status of the PaymentIntent is what lets nothing
  // be done twice, and a failure that Stripe saved under a key would stand in the way for a day.
  const cancel = (place: IntentPlace) =>
    afterwards(place, paymentIntents.cancel(place.intentId, withCharge, on(place.account)));

  // The amount, so that no more is paid out than was agreed, should the authorisation have been changed at Stripe.
  const capture = (place: IntentPlace, amount: bigint) => {
    const params = { amount_to_capture: Number(amount), ...withCharge };
    return afterwards(place, paymentIntents.capture(place.intentId, params, on(place.account)));
  };

  /** Whatever is made for an order is made under one key, and found again by these parameters. */
  const make = (order: PaymentOrder, params: Omit<Stripe.PaymentIntentCreateParams, 'currency'>) =>
    paymentIntents.create(
      {
        ...params,
        currency: order.currency.toLowerCase(),
        allowed_payment_method_types: ['card'],
        capture_method: 'manual',
        metadata: { [holdKey]: order.holdId, artseal_escrow: order.escrowId },
        ...withCharge,
      },
      { ...on(accountOf(order)), idempotencyKey: order.holdId },
    );

  /** The buyer's card as the seller's account knows it, which can be charged once; the same one each time. */
  async function cloneCard(order: PaymentOrder): Promise<string> {
    const { account, customer, paymentMethod } = namesOf(order);
    const params = { customer, payment_method: paymentMethod };
    const options = { ...on(account), idempotencyKey: `${order.holdId}:card` };
    return (await paymentMethods.create(params, options)).id;
  }

  async function authorise(order: PaymentOrder): Promise<FoundIntent> {
    const intent = await make(order, {
      amount: Number(order.amount),
      payment_method: await cloneCard(order),
      confirm: true,
      ...(returnUrl === undefined ? { off_session: true } : { return_url: returnUrl }),
    });
    // A saved answer is one of the past: the money may have gone on since.
    const place = { account: accountOf(order), intentId: intent.id };
    return isSavedAnswer(intent.lastResponse.headers) ? retrieve(place) : { intent, place };
  }

  async function useUpKey(order: PaymentOrder): Promise<PaymentSnapshot> {
    try {
      const unconfirmed = await make(order, { amount: unconfirmedAmount });
      return await cancel({ account: accountOf(order), intentId: unconfirmed.id });
    } catch (error) {
      if (!isKeyInOtherUse(error)) throw error;
      // The FREEZE was there first, but need not have left anything that can be cancelled.
      const found = await find(order);
      if (found === undefined) throw error;
      return cancel(found.place);
    }
  }

  return { find, retrieve, authorise, snapshot, capture, cancel, useUpKey, accountOf };
}
