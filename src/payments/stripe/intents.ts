import type Stripe from 'stripe';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { PaymentOrder } from '../provider.ts';
import { isKeyInOtherUse, isRejectedByStripe, isSavedResponse, reasonOf } from './client.ts';
import { holdKey } from './notification.ts';
import { idsOf } from './parties.ts';
import { type FoundIntent, type IntentPlace, placeOf, snapshotOf, wasDisputed } from './snapshot.ts';

// The PaymentIntents of orders. An order has at most one. Call these functions inside StripeClient.call.

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

/** Returns the PaymentIntent of an order, by its reference or else among those of the seller. */
export async function findIntent(stripe: Stripe, order: PaymentOrder): Promise<FoundIntent | undefined> {
  if (order.reference !== undefined) return retrieveIntent(stripe, placeOf(order.reference));
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
  for await (const intent of stripe.paymentIntents.list(params, { stripeAccount: account })) {
    if (intent.metadata[holdKey] === order.holdId) return { intent, place: { account, intentId: intent.id } };
    seen += 1;
    if (seen >= lookUpLimits.intents) throw new Error(`Stripe: more than ${seen} payments since the order`);
  }
  return undefined;
}

/** Reads a PaymentIntent. */
export async function retrieveIntent({ paymentIntents }: Stripe, place: IntentPlace): Promise<FoundIntent> {
  const options = { stripeAccount: place.account };
  return { place, intent: await paymentIntents.retrieve(place.intentId, withCharge, options) };
}

/** Returns where the money is; undefined if none is reserved, but still could be. */
export async function snapshotWithDisputes(
  { disputes }: Stripe,
  found: FoundIntent,
): Promise<PaymentSnapshot | undefined> {
  if (!wasDisputed(found)) return snapshotOf(found, []);
  const { account: stripeAccount, intentId } = found.place;
  const params = { payment_intent: intentId, limit: disputesMax };
  const contested = await disputes.list(params, { stripeAccount });
  if (contested.has_more) throw new Error(`Stripe: more than ${disputesMax} disputes of ${intentId}`);
  return snapshotOf(found, contested.data);
}

/**
 * Creates the PaymentIntent of an order and authorises the amount. With a `returnUrl`, the buyer can be asked to confirm the
 * payment and then returns there. Rejects with Stripe's own error.
 */
export async function authorise(
  stripe: Stripe,
  order: PaymentOrder,
  returnUrl: string | undefined,
): Promise<FoundIntent> {
  const intent = await create(stripe, order, {
    amount: Number(order.amount),
    payment_method: await cloneCard(stripe, order),
    confirm: true,
    ...(returnUrl === undefined ? { off_session: true } : { return_url: returnUrl }),
  });
  const place = { account: idsOf(order).account, intentId: intent.id };
  // The money may have moved since a saved response.
  return isSavedResponse(intent.lastResponse.headers) ? retrieveIntent(stripe, place) : { intent, place };
}

/**
 * Captures. Resolves to the status after it, and the reason if Stripe declined. It names the amount: no more is paid out than
 * was agreed, even if somebody changed the authorisation at Stripe.
 */
export function capture(stripe: Stripe, place: IntentPlace, amount: bigint): Promise<PaymentSnapshot> {
  const params = { amount_to_capture: Number(amount), ...withCharge };
  const options = { stripeAccount: place.account };
  return afterwards(stripe, place, stripe.paymentIntents.capture(place.intentId, params, options));
}

/**
 * Cancels. Resolves like `capture`. Neither has an idempotency key: the status of the PaymentIntent prevents a second
 * cancellation or capture, and a failure that Stripe saved under a key would block both for a day.
 */
export function cancel(stripe: Stripe, place: IntentPlace): Promise<PaymentSnapshot> {
  const options = { stripeAccount: place.account };
  return afterwards(stripe, place, stripe.paymentIntents.cancel(place.intentId, withCharge, options));
}

/** Uses up the key of an order without a PaymentIntent, so that none can be created for it. */
export async function useUpKey(stripe: Stripe, order: PaymentOrder): Promise<PaymentSnapshot> {
  try {
    const unconfirmed = await create(stripe, order, { amount: unconfirmedAmount });
    return await cancel(stripe, { account: idsOf(order).account, intentId: unconfirmed.id });
  } catch (error) {
    if (!isKeyInOtherUse(error)) throw error;
    // The FREEZE came first, but need not have left a PaymentIntent.
    const made = await findIntent(stripe, order);
    if (made === undefined) throw error;
    return cancel(stripe, made.place);
  }
}

/** Returns the status after an action. If Stripe rejects the action: the present status, and the reason if it is HELD. */
async function afterwards(
  stripe: Stripe,
  place: IntentPlace,
  action: Promise<Stripe.PaymentIntent>,
): Promise<PaymentSnapshot> {
  // A PaymentIntent that holds no money is as good as none.
  const snapshotOrAbsent = async (intent: Stripe.PaymentIntent): Promise<PaymentSnapshot> =>
    (await snapshotWithDisputes(stripe, { intent, place })) ?? { status: 'ABSENT' };
  try {
    return await snapshotOrAbsent(await action);
  } catch (error) {
    if (!isRejectedByStripe(error)) throw error;
    const { intent } = await retrieveIntent(stripe, place);
    const payment = await snapshotOrAbsent(intent);
    return payment.status === 'HELD' ? { ...payment, declined: reasonOf(error) } : payment;
  }
}

/** Creates a PaymentIntent under the one key of an order. */
function create(
  { paymentIntents }: Stripe,
  order: PaymentOrder,
  params: Omit<Stripe.PaymentIntentCreateParams, 'currency'>,
) {
  return paymentIntents.create(
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
}

/** Clones the buyer's card to the seller's account, where it can be charged once. A repetition returns the same clone. */
async function cloneCard({ paymentMethods }: Stripe, order: PaymentOrder): Promise<string> {
  const { account: stripeAccount, customer, paymentMethod } = idsOf(order);
  const params = { customer, payment_method: paymentMethod };
  const options = { stripeAccount, idempotencyKey: `${order.holdId}:card` };
  return (await paymentMethods.create(params, options)).id;
}
