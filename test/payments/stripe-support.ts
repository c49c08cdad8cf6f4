import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import type { PaymentOrder } from '../../src/payments/provider.ts';
import { createStripeProvider } from '../../src/payments/stripe/provider.ts';
import { cards, startStripeStandIn } from '../support/stripe-stand-in.ts';
import { instruct, paymentOrder } from './provider-suite.ts';

const buyer = (paymentMethod: string, customer = 'cus_1') => ({ customer, paymentMethod });

/** Buyers by their id. */
export const buyers: Readonly<Record<string, { customer: string; paymentMethod: string }>> = {
  buyer: buyer(cards.good),
  'other-buyer': buyer(cards.good, 'cus_2'),
  declined: buyer(cards.declined),
  insufficient: buyer(cards.insufficientFunds),
  stolen: buyer(cards.stolen),
  authentication: buyer(cards.authenticationRequired),
  action: buyer(cards.actionRequired),
  processing: buyer(cards.processing),
  'unknown-card': buyer('pm_gone'),
  'unknown-customer': buyer(cards.good, 'cus_gone'),
};

/** Starts a stand-in of Stripe and a provider that uses it. */
export async function opened(
  t: TestContext,
  { now, returnUrl }: { now?: (() => number) | undefined; returnUrl?: string } = {},
) {
  const standIn = await startStripeStandIn(t);
  const provider = createStripeProvider({ ...standIn, returnUrl }, now);
  t.after(() => provider.close());
  const order = (buyerId = 'buyer', more: Partial<PaymentOrder> = {}) =>
    paymentOrder({ buyerId, buyer: buyers[buyerId], seller: { account: 'acct_1' }, ...more });
  return { standIn, provider, order };
}

/** The same with an order that is held, the response to its FREEZE, and its PaymentIntent. */
export async function held(t: TestContext) {
  const at = await opened(t);
  const asked = at.order();
  const frozen = await instruct(at.provider, asked, 'FREEZE');
  const intent = at.standIn.intents[0] ?? assert.fail();
  return { ...at, asked, frozen, reference: frozen.reference, intent };
}
