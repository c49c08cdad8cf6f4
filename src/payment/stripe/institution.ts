import type Stripe from 'stripe';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { Violation } from '../../domain/violation.ts';
import type { Access, Institution, PaymentInstruction, PaymentOrder, Terms } from '../institution.ts';
import {
  createStripeClient,
  isKeyInOtherUse,
  isRefusedByStripe,
  isSavedAnswer,
  refusalOfCredentials,
  type StripeClient,
} from './client.ts';
import { createIntents, type Intents, snapshotOrAbsent } from './intents.ts';
import { readStripeNotification } from './notification.ts';
import type { StripeParties } from './parties.ts';
import type { StripeSettings } from './settings.ts';
import { snapshotOf } from './snapshot.ts';

/**
 * Age of an order, in milliseconds, from which on its FREEZE is preceded by a look-up. Stripe keeps
 * idempotency keys for 24 hours; the rest is for a request that is long on its way.
 */
const keyTrustedMs = 12 * 60 * 60 * 1000;

/**
 * Escrow at Stripe: the hold is the authorisation of a saved card by a PaymentIntent with manual capture,
 * whose id is the reference of the PaymentSnapshot. RELEASE captures it, which transfers the money to the seller's
 * connected account. REFUND and CANCEL cancel it. An authorisation that nobody captures runs out after some
 * days.
 *
 * One hold: whatever is made for an order is made under one idempotency key, its holdId, which is the
 * instruction id of the FREEZE; so Stripe makes one PaymentIntent and no more. That is also how VOID is kept
 * for an order without one: CANCEL uses the key up for a PaymentIntent that nobody confirms, after which
 * Stripe turns down a FREEZE that is still on its way.
 *
 * Saved answers: Stripe gives the first answer under a key again until it forgets the key, after 24 hours
 * or more. A success may be one of the past, so Stripe is asked again. A saved refusal of a FREEZE cannot
 * turn into a hold any more. And a saved 500 stays a 500: what was done shows in a look-up alone, which
 * therefore has to come before any repetition. Where nothing was done, nothing but waiting helps: a FREEZE,
 * RELEASE or REFUND, or the CANCEL of an order without a PaymentIntent, can be blocked for a day.
 *
 * The customer of a buyer must not change while orders of theirs are open: it is where a look-up without a
 * reference searches.
 */
export function createStripeInstitution(
  settings: StripeSettings,
  nowMs: () => number = Date.now,
): Institution<StripeSettings> {
  const client = createStripeClient(settings);
  let known = settings.parties;
  const intents = createIntents(client.stripe, () => known);
  const carryOut = createInstructions(intents, nowMs);
  return {
    checkAccess: (signal) => checkAccess(client, signal),
    reload: ({ parties }) => {
      known = parties;
    },
    check: (parties) => strangers(parties, known),
    instruct: (instruction, signal) => client.call(signal, () => carryOut[instruction.kind](instruction)),
    lookUp: (order, signal) =>
      client.call(signal, async () => {
        const intent = await intents.find(order);
        return intent === undefined ? { status: 'ABSENT' } : snapshotOrAbsent(intent);
      }),
    readNotification: (sent) => readStripeNotification(sent, settings.webhookSecret),
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
      const why = refusalOfCredentials(error);
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

/** The key by which a PaymentIntent without money is cancelled that no instruction says to cancel. */
const voidKey = ({ holdId }: PaymentOrder) => `${holdId}:void`;

function createInstructions(intents: Intents, nowMs: () => number) {
  /** Where the money stands, once it is certain that a PaymentIntent without any will never get some. */
  const settled = (order: PaymentOrder, intent: Stripe.PaymentIntent) =>
    snapshotOf(intent) ?? intents.cancel(intent.id, voidKey(order));

  async function freeze(order: PaymentOrder, repeated = false): Promise<PaymentSnapshot> {
    try {
      return await settled(order, await intents.authorise(order));
    } catch (error) {
      const intent = await madeDespite(error, order);
      if (intent !== undefined) return settled(order, intent);
      if (!isRefusedByStripe(error)) throw error;
      // Every later FREEZE gets this answer as well.
      if (isSavedAnswer(error.headers)) return { status: 'VOID' };
      // Whether the answer was saved shows in the next one. If not, the key is still free.
      return repeated ? intents.useUpKey(order, voidKey(order)) : freeze(order, true);
    }
  }

  /** The PaymentIntent that there is although a FREEZE failed: a decline leaves its own, a CANCEL another. */
  async function madeDespite(error: unknown, order: PaymentOrder): Promise<Stripe.PaymentIntent | undefined> {
    if (isKeyInOtherUse(error)) return intents.find(order);
    const left = isRefusedByStripe(error) ? error.payment_intent : undefined;
    return left === undefined ? undefined : intents.retrieve(left.id);
  }

  const intentIdOf = async (order: PaymentOrder) => order.reference ?? (await intents.find(order))?.id;

  return {
    FREEZE: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const isOld = nowMs() - order.openedAtMs > keyTrustedMs;
      const intent = isOld ? await intents.find(order) : undefined;
      return intent === undefined ? freeze(order) : settled(order, intent);
    },
    RELEASE: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const intentId = await intentIdOf(order);
      return intentId === undefined
        ? { status: 'ABSENT' }
        : intents.capture(intentId, order.amount, order.instructionId);
    },
    REFUND: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const intentId = await intentIdOf(order);
      return intentId === undefined ? { status: 'ABSENT' } : intents.cancel(intentId, order.instructionId);
    },
    CANCEL: async (order: PaymentInstruction): Promise<PaymentSnapshot> => {
      const intentId = await intentIdOf(order);
      return intentId === undefined
        ? intents.useUpKey(order, order.instructionId)
        : intents.cancel(intentId, order.instructionId);
    },
  };
}

function strangers({ buyerId, sellerId }: Terms, { buyers, sellers }: StripeParties): Violation[] {
  const rule = 'is not known to the payment institution';
  return [
    ...(buyers.has(buyerId) ? [] : [{ field: 'buyerId', rule }]),
    ...(sellers.has(sellerId) ? [] : [{ field: 'sellerId', rule }]),
  ];
}
