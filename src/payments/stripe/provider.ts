import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import type { Access, PaymentInstruction, PaymentOrder, PaymentProvider } from '../provider.ts';
import { checkAmount } from './amounts.ts';
import type { StripeSettings } from './client.ts';
import {
  createStripeClient,
  credentialsError,
  isKeyInOtherUse,
  isRejectedByStripe,
  isSavedAnswer,
  reasonOf,
  type StripeClient,
} from './client.ts';
import { declinedFor } from './declined.ts';
import { createIntents, type Intents } from './intents.ts';
import { readStripeNotification } from './notification.ts';
import { type IntentPlace, placeOf } from './reference.ts';
import type { FoundIntent } from './snapshot.ts';

/**
 * Age of an order, in milliseconds, from which on its FREEZE is preceded by a look-up. Stripe keeps
 * idempotency keys for 24 hours; the rest is for a request that is long on its way.
 */
const keyTrustedMs = 12 * 60 * 60 * 1000;

/**
 * Escrow at Stripe: the hold is the authorisation of a saved card by a PaymentIntent with manual capture, made on the
 * seller's connected account with a clone of the card (a direct charge), so that the money never is the platform's.
 * `acct_…/pi_…` is the reference of the PaymentSnapshot. RELEASE captures it, REFUND and CANCEL cancel it. An
 * authorisation that nobody captures runs out after some days.
 *
 * One hold: whatever is made for an order is made under one idempotency key, its holdId, which is the
 * instruction id of the FREEZE; so Stripe makes one PaymentIntent and no more. That is also how VOID is kept
 * for an order without one: CANCEL uses the key up for a PaymentIntent that nobody confirms, after which
 * Stripe turns down a FREEZE that is still on its way. RELEASE, REFUND and CANCEL of a PaymentIntent need no such key:
 * what it has become lets none of them be done twice.
 *
 * Saved answers: Stripe gives the first answer under a key again until it forgets the key, after 24 hours
 * or more. A success may be one of the past, so Stripe is asked again. A saved error of a FREEZE cannot
 * turn into a hold any more. And a saved 500 stays a 500: what was done shows in a look-up alone, which
 * therefore has to come before any repetition. Where nothing was done, nothing but waiting helps: a FREEZE,
 * or the CANCEL of an order without a PaymentIntent, can be blocked for a day.
 *
 * A look-up without a reference searches the seller's account.
 */
export function createStripeProvider(
  settings: StripeSettings,
  nowMs: () => number = Date.now,
): PaymentProvider {
  const client = createStripeClient(settings);
  const intents = createIntents(client.stripe, settings.returnUrl);
  const carryOut = createInstructions(intents, nowMs);
  return {
    checkAccess: (signal) => checkAccess(client, signal),
    check: checkAmount,
    instruct: (instruction, signal) => client.call(signal, () => carryOut[instruction.kind](instruction)),
    lookUp: (order, signal) =>
      client.call(signal, async () => {
        const found = await intents.find(order);
        return (found && (await intents.snapshot(found))) ?? { status: 'ABSENT' };
      }),
    notificationMethod: 'POST',
    readNotification: (sent) => readStripeNotification(sent, settings),
    close: async () => client.close(),
  };
}

/** Lists one PaymentIntent: what the service cannot do without, so that a restricted key needs no permission for this alone. */
async function checkAccess({ stripe, call }: StripeClient, signal: AbortSignal): Promise<Access> {
  const ask = async (): Promise<Access> => {
    try {
      await stripe.paymentIntents.list({ limit: 1 });
      return { kind: 'ACCEPTED' };
    } catch (error) {
      const why = credentialsError(error);
      if (why === undefined) throw error;
      return { kind: 'REJECTED', why };
    }
  };
  try {
    return await call(signal, ask);
  } catch (error) {
    return { kind: 'UNREACHABLE', why: error instanceof Error ? error.message : String(error) };
  }
}

/** Why a PaymentIntent is given up that waits for the buyer without an address to act at. */
const authenticationRequired: Declined = declinedFor({ code: 'authentication_required' });

function createInstructions(intents: Intents, nowMs: () => number) {
  /** Where the money stands, once it is certain that a PaymentIntent without any will never get some. */
  async function settled(found: FoundIntent, why?: Declined): Promise<PaymentSnapshot> {
    const payment = await intents.snapshot(found);
    if (payment !== undefined) return because(payment, why);
    const { intent, place } = found;
    const asksBuyer = intent.status === 'requires_action' ? authenticationRequired : undefined;
    const { last_payment_error: last } = intent;
    const reason = why ?? (last ? declinedFor(last) : asksBuyer);
    return because(await intents.cancel(place), reason);
  }

  async function freeze(order: PaymentOrder, repeated = false): Promise<PaymentSnapshot> {
    try {
      return await settled(await intents.authorise(order));
    } catch (error) {
      const why = reasonOf(error);
      const found = await madeDespite(error, order);
      if (found !== undefined) return settled(found, why);
      if (!isRejectedByStripe(error)) throw error;
      // Every later FREEZE gets this answer as well.
      if (isSavedAnswer(error.headers)) return because({ status: 'VOID' }, why);
      // Whether the answer was saved shows in the next one. If not, the key is still free.
      return repeated ? because(await useUpKey(order), why) : freeze(order, true);
    }
  }

  /** The PaymentIntent that there is although a FREEZE failed: a decline leaves its own, a CANCEL another. */
  async function madeDespite(error: unknown, order: PaymentOrder): Promise<FoundIntent | undefined> {
    if (isKeyInOtherUse(error)) return intents.find(order);
    const left = isRejectedByStripe(error) ? error.payment_intent : undefined;
    if (left === undefined) return undefined;
    return intents.retrieve({ account: intents.accountOf(order), intentId: left.id });
  }

  /** For a FREEZE that was refused: where Stripe refuses even the least of all PaymentIntents, none can be made. */
  async function useUpKey(order: PaymentOrder): Promise<PaymentSnapshot> {
    try {
      return await intents.useUpKey(order);
    } catch (error) {
      if (isRejectedByStripe(error)) return { status: 'VOID' };
      throw error;
    }
  }

  async function locate(order: PaymentOrder): Promise<IntentPlace | undefined> {
    if (order.reference !== undefined) return placeOf(order.reference);
    return (await intents.find(order))?.place;
  }

  return {
    FREEZE: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      // With a reference there is one already, which may wait for the buyer.
      const mayBeThere = order.reference !== undefined || nowMs() - order.openedAtMs > keyTrustedMs;
      const found = mayBeThere ? await intents.find(order) : undefined;
      return found === undefined ? freeze(order) : settled(found);
    },
    RELEASE: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const place = await locate(order);
      return place === undefined ? { status: 'ABSENT' } : intents.capture(place, order.amount);
    },
    REFUND: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const place = await locate(order);
      return place === undefined ? { status: 'ABSENT' } : intents.cancel(place);
    },
    CANCEL: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const place = await locate(order);
      return place === undefined ? intents.useUpKey(order) : intents.cancel(place);
    },
  };
}

/** A payment with the reason why there is none. */
function because(payment: PaymentSnapshot, why: Declined | undefined): PaymentSnapshot {
  return payment.status === 'VOID' && why !== undefined ? { ...payment, declined: why } : payment;
}
