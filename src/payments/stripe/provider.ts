import type Stripe from 'stripe';
import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import type { Access, PaymentInstruction, PaymentOrder, PaymentProvider } from '../provider.ts';
import { checkAmount } from './amounts.ts';
import {
  createStripeClient,
  credentialsError,
  isKeyInOtherUse,
  isRejectedByStripe,
  isSavedResponse,
  reasonOf,
  type StripeClient,
  type StripeSettings,
} from './client.ts';
import { declinedFor } from './declined.ts';
import {
  authorise,
  cancel,
  capture,
  findIntent,
  retrieveIntent,
  snapshotWithDisputes,
  useUpKey,
} from './intents.ts';
import { readStripeNotification } from './notification.ts';
import { idsOf } from './parties.ts';
import { type FoundIntent, type IntentPlace, placeOf } from './snapshot.ts';

/**
 * Age of an order, in milliseconds, from which a FREEZE looks up the payment first. Stripe keeps idempotency keys for 24
 * hours; the rest is for a request that is slow to arrive.
 */
const keyTrustedMs = 12 * 60 * 60 * 1000;

/**
 * Escrow at Stripe. The hold is the authorisation of a saved card by a PaymentIntent with manual capture. It is a direct charge:
 * it is created on the seller's connected account with a clone of the card, so the money is never the platform's. RELEASE
 * captures it, REFUND and CANCEL cancel it. An authorisation that nobody captures lapses after some days. The reference of
 * the PaymentSnapshot is `acct_…/pi_…`.
 *
 * One hold: everything for an order is created under one idempotency key, its holdId, which is the instruction id of the
 * FREEZE. So Stripe creates at most one PaymentIntent. To keep an order without one VOID, CANCEL uses up the key for a
 * PaymentIntent that nobody confirms; Stripe then rejects a FREEZE that arrives later. RELEASE, REFUND and CANCEL of a
 * PaymentIntent need no key: its status prevents a second one.
 *
 * Saved responses: Stripe repeats the first response under a key for at least 24 hours. A saved success may be outdated, so
 * the provider reads the PaymentIntent. A saved error of a FREEZE means that it can no longer make a hold. A saved 500 stays a
 * 500: only a look-up shows what was done, so it has to precede each repetition. If nothing was done, a FREEZE, or the CANCEL
 * of an order without a PaymentIntent, can be blocked for a day.
 *
 * A look-up without a reference searches the seller's account.
 */
export function createStripeProvider(
  settings: StripeSettings,
  nowMs: () => number = Date.now,
): PaymentProvider {
  const client = createStripeClient(settings);
  const { stripe } = client;
  const carryOut = createInstructions(stripe, settings.returnUrl, nowMs);
  return {
    checkAccess: (signal) => checkAccess(client, signal),
    check: checkAmount,
    instruct: (instruction, signal) => client.call(signal, () => carryOut[instruction.kind](instruction)),
    lookUp: (order, signal) =>
      client.call(signal, async () => {
        const found = await findIntent(stripe, order);
        return (found && (await snapshotWithDisputes(stripe, found))) ?? { status: 'ABSENT' };
      }),
    notificationMethod: 'POST',
    readNotification: (sent) => readStripeNotification(sent, settings),
    close: async () => client.close(),
  };
}

/** Lists one PaymentIntent, which the service needs anyway: a restricted key needs no extra permission for the check. */
function checkAccess({ stripe, call }: StripeClient, signal: AbortSignal): Promise<Access> {
  return call(signal, async () => {
    try {
      await stripe.paymentIntents.list({ limit: 1 });
      return { kind: 'ACCEPTED' };
    } catch (error) {
      const why = credentialsError(error);
      if (why === undefined) throw error;
      return { kind: 'REJECTED', why };
    }
  });
}

/** Why a PaymentIntent is cancelled that waits for a buyer who has no page to act on. */
const authenticationRequired: Declined = declinedFor({ code: 'authentication_required' });

function createInstructions(stripe: Stripe, returnUrl: string | undefined, nowMs: () => number) {
  /** Returns where the money is. Cancels a PaymentIntent that holds none, so that it never will. */
  async function settled(found: FoundIntent, why?: Declined): Promise<PaymentSnapshot> {
    const payment = await snapshotWithDisputes(stripe, found);
    if (payment !== undefined) return because(payment, why);
    const { intent, place } = found;
    const asksBuyer = intent.status === 'requires_action' ? authenticationRequired : undefined;
    const { last_payment_error: last } = intent;
    const reason = why ?? (last ? declinedFor(last) : asksBuyer);
    return because(await cancel(stripe, place), reason);
  }

  async function freeze(order: PaymentOrder, repeated = false): Promise<PaymentSnapshot> {
    try {
      return await settled(await authorise(stripe, order, returnUrl));
    } catch (error) {
      const why = reasonOf(error);
      const found = await madeDespite(error, order);
      if (found !== undefined) return settled(found, why);
      if (!isRejectedByStripe(error)) throw error;
      // Each later FREEZE gets this response too.
      if (isSavedResponse(error.headers)) return because({ status: 'VOID' }, why);
      // The next response shows whether this one was saved. If not, the key is still free.
      return repeated ? because(await keyUsedUp(order), why) : freeze(order, true);
    }
  }

  /** Returns the PaymentIntent that exists although a FREEZE failed: that of the decline, or of a CANCEL. */
  async function madeDespite(error: unknown, order: PaymentOrder): Promise<FoundIntent | undefined> {
    if (isKeyInOtherUse(error)) return findIntent(stripe, order);
    const left = isRejectedByStripe(error) ? error.payment_intent : undefined;
    if (left === undefined) return undefined;
    return retrieveIntent(stripe, { account: idsOf(order).account, intentId: left.id });
  }

  /** If Stripe rejects even an unconfirmed PaymentIntent, none can be created. */
  async function keyUsedUp(order: PaymentOrder): Promise<PaymentSnapshot> {
    try {
      return await useUpKey(stripe, order);
    } catch (error) {
      if (isRejectedByStripe(error)) return { status: 'VOID' };
      throw error;
    }
  }

  async function locate(order: PaymentOrder): Promise<IntentPlace | undefined> {
    if (order.reference !== undefined) return placeOf(order.reference);
    return (await findIntent(stripe, order))?.place;
  }

  return {
    FREEZE: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      // With a reference there is a PaymentIntent, which may wait for the buyer.
      const mayBeThere = order.reference !== undefined || nowMs() - order.openedAtMs > keyTrustedMs;
      const found = mayBeThere ? await findIntent(stripe, order) : undefined;
      return found === undefined ? freeze(order) : settled(found);
    },
    RELEASE: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const place = await locate(order);
      return place === undefined ? { status: 'ABSENT' } : capture(stripe, place, order.amount);
    },
    REFUND: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const place = await locate(order);
      return place === undefined ? { status: 'ABSENT' } : cancel(stripe, place);
    },
    CANCEL: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const place = await locate(order);
      return place === undefined ? useUpKey(stripe, order) : cancel(stripe, place);
    },
  };
}

/** Adds the reason to a VOID payment. */
function because(payment: PaymentSnapshot, why: Declined | undefined): PaymentSnapshot {
  return payment.status === 'VOID' && why !== undefined ? { ...payment, declined: why } : payment;
}
