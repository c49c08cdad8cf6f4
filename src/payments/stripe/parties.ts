import type { PartyRules } from '../../domain/party.ts';
import type { PaymentOrder } from '../provider.ts';

/** The ids at Stripe of who pays and who is paid. */
export interface StripeIds {
  /** On the platform's own account, like the card. */
  readonly customer: string;
  readonly paymentMethod: string;
  /** The seller's connected account. */
  readonly account: string;
}

/** How buyers and sellers are registered. */
export const stripeParties: PartyRules = {
  BUYER: {
    customer: { pattern: /^cus_[A-Za-z0-9]+$/, what: 'a customer, cus_…' },
    paymentMethod: { pattern: /^(pm|card)_[A-Za-z0-9_]+$/, what: 'a payment method, pm_…' },
  },
  SELLER: { account: { pattern: /^acct_[A-Za-z0-9]+$/, what: 'a connected account, acct_…' } },
};

/** Throws an Error if the buyer or the seller of an order is not registered. */
export function idsOf({ buyer, seller }: PaymentOrder): StripeIds {
  const { customer, paymentMethod, account } = { ...buyer, ...seller };
  if (!customer || !paymentMethod) throw unknown('buyer');
  if (!account) throw unknown('seller');
  return { customer, paymentMethod, account };
}

const unknown = (role: string) =>
  new Error(`The ${role} of the order is not known: artseal party add registers buyers and sellers.`);
