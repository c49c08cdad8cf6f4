import type { PartyRules } from '../../domain/party.ts';
import type { PaymentOrder } from '../provider.ts';

/** How buyers, on the platform's own account, and sellers are registered. */
export const stripeParties: PartyRules = {
  BUYER: {
    customer: { pattern: /^cus_[A-Za-z0-9]+$/, what: 'a customer, cus_…' },
    paymentMethod: { pattern: /^(pm|card)_[A-Za-z0-9_]+$/, what: 'a payment method, pm_…' },
  },
  SELLER: { account: { pattern: /^acct_[A-Za-z0-9]+$/, what: 'a connected account, acct_…' } },
};

/** The ids at Stripe of who pays and who is paid. Throws an Error if one of them is not registered. */
export function idsOf({ buyer, seller }: PaymentOrder) {
  const { customer, paymentMethod, account } = { ...buyer, ...seller };
  if (!customer || !paymentMethod) throw unknown('buyer');
  if (!account) throw unknown('seller');
  return { customer, paymentMethod, account };
}

const unknown = (role: string) =>
  new Error(`The ${role} of the order is not known: artseal party add registers buyers and sellers.`);
