import { isSecure } from '../../domain/address.ts';
import type { Environment } from '../../domain/caller.ts';
import { matching, type ProviderKind, readOrigin, SettingError } from '../provider.ts';
import { chargedCurrencies } from './amounts.ts';
import type { StripeSettings } from './client.ts';
import { stripeParties } from './parties.ts';

const stripeUrl = 'https://api.stripe.com';

/** The form of an API key in each environment. */
const keys = {
  sandbox: { pattern: /^(sk|rk)_test_\w+$/, rule: 'must be a test key, sk_test_ or rk_test_, in a sandbox' },
  production: {
    pattern: /^(sk|rk)_live_\w+$/,
    rule: 'must be a live key, sk_live_ or rk_live_, in production',
  },
} as const satisfies Record<Environment, { pattern: RegExp; rule: string }>;

/** Stripe as a payment provider of deployments. */
export const stripe: ProviderKind<StripeSettings> = {
  name: 'stripe',
  movesMoney: true,
  otherUnits: ['ISK', 'MGA', 'UGX'],
  currencies: chargedCurrencies,
  parties: stripeParties,
  ownFiles: [],
  settings: {
    apiKey: {
      variable: 'ARTSEAL_STRIPE_API_KEY',
      fallback: '',
      meaning:
        'secret or restricted key: sk_test_ or rk_test_ in a sandbox, sk_live_ or rk_live_ in production',
      secret: true,
      read: (key, environment) => {
        const { pattern, rule } = keys[environment()];
        return matching(key, pattern, rule);
      },
    },
    webhookSecret: {
      variable: 'ARTSEAL_STRIPE_WEBHOOK_SECRET',
      fallback: '',
      meaning: 'signing secret of the webhook endpoint for connected accounts, whsec_',
      secret: true,
      read: (secret) => matching(secret, /^whsec_[\w+/=-]+$/, 'must be a signing secret, whsec_'),
    },
    returnUrl: {
      variable: 'ARTSEAL_STRIPE_RETURN_URL',
      fallback: 'none',
      meaning:
        'page that buyers return to after they confirm a payment (3-D Secure); none: no buyer is asked',
      read: (text, environment) => (text === 'none' ? undefined : readReturnUrl(text, environment)),
    },
    url: {
      variable: 'ARTSEAL_STRIPE_URL',
      fallback: stripeUrl,
      meaning: 'address of Stripe; only a sandbox can use another',
      // It may hold a password.
      secret: true,
      read: (text, environment) => readOrigin(text, stripeUrl, environment),
    },
  },
  open: async (settings, { clock }) => {
    const { createStripeProvider } = await import('./provider.ts');
    return createStripeProvider(settings, clock.nowMs);
  },
};

function readReturnUrl(text: string, environment: () => Environment): string {
  const url = URL.parse(text);
  if (url === null || url.username !== '' || url.password !== '')
    throw new SettingError('must be none or the address of a page, https://…');
  const isTried = environment() === 'sandbox' && isSecure(url);
  if (url.protocol !== 'https:' && !isTried)
    throw new SettingError('must be https, or http on a loopback address in a sandbox');
  return url.href;
}
