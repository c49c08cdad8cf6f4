/** The artwork of the test vectors. */
export const artwork = {
  author: 'Qi Baishi',
  era: '1947',
  size: '68 x 136 cm',
  material: 'ink and colour on paper',
  condition: 'two restored creases',
  price: 128_000_000,
};

/** The terms of an order for a filing. */
export function escrowTerms(filingNo: string) {
  return { filingNo, type: 'GUARANTEE', amount: 128_000_000, buyerId: 'buyer-1', sellerId: 'seller-1' };
}

/** The settings of Stripe, which needs registered parties. */
export const stripeSettings = {
  ARTSEAL_PAYMENT_PROVIDER: 'stripe',
  ARTSEAL_STRIPE_API_KEY: 'sk_test_1',
  ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_1',
};
