import type { Environment } from '../../domain/caller.ts';
import type { ProviderIdRule } from '../../domain/party.ts';
import { matching, type ProviderKind, readOrigin, SettingError } from '../provider.ts';
import type { MangopaySettings } from './client.ts';

const origins = {
  sandbox: 'https://api.sandbox.mangopay.com',
  production: 'https://api.mangopay.com',
} as const satisfies Record<Environment, string>;

/** The default of ARTSEAL_MANGOPAY_URL. */
const originOfEnvironment = 'auto';

/** ISO 4217 currencies of Mangopay's wallets. */
const currencies: readonly string[] =
  'AED AUD CAD CHF CZK DKK EUR GBP HKD HUF ILS JPY MXN NOK NZD PLN RON SAR SEK SGD TRY USD ZAR'.split(' ');

/** The form of ids at Mangopay: digits, or a prefix and letters; at most 128 characters. */
const idPattern = /^[A-Za-z0-9_-]{1,128}$/;
const user: ProviderIdRule = { pattern: idPattern, what: 'a user, user_…' };
const wallet: ProviderIdRule = { pattern: idPattern, what: 'a wallet of that user, wlt_…' };

/** Mangopay as a payment provider of deployments. */
export const mangopay: ProviderKind<MangopaySettings> = {
  name: 'mangopay',
  movesMoney: true,
  otherUnits: [],
  currencies,
  parties: { BUYER: { user, wallet }, SELLER: { user, wallet } },
  ownFiles: [],
  settings: {
    clientId: {
      variable: 'ARTSEAL_MANGOPAY_CLIENT_ID',
      fallback: '',
      meaning: 'ClientId of the account',
      read: (id) => matching(id, /^[A-Za-z0-9_-]{1,64}$/, 'must be a ClientId: letters, digits, - and _'),
    },
    apiKey: {
      variable: 'ARTSEAL_MANGOPAY_API_KEY',
      fallback: '',
      meaning: 'API key of that ClientId',
      secret: true,
      read: (key) => matching(key, /^[\x21-\x7e]{16,256}$/, 'must be an API key, 16 characters or more'),
    },
    escrowUser: {
      variable: 'ARTSEAL_MANGOPAY_ESCROW_USER',
      fallback: '',
      meaning: 'user who owns the wallets that orders are held in, of the category PLATFORM',
      read: (id) => matching(id, idPattern, 'must be the id of a user, user_…'),
    },
    hookSecret: {
      variable: 'ARTSEAL_MANGOPAY_HOOK_SECRET',
      fallback: '',
      meaning: 'secret of your choice, which the URL of every hook ends with: ?secret=…',
      secret: true,
      read: (secret) =>
        matching(secret, /^[A-Za-z0-9_-]{32,128}$/, 'must be 32 to 128 letters, digits, - and _'),
    },
    url: {
      variable: 'ARTSEAL_MANGOPAY_URL',
      fallback: originOfEnvironment,
      meaning: `address of Mangopay: ${originOfEnvironment} is ${origins.production} in production and ${origins.sandbox} in a sandbox; only a sandbox can use another`,
      // It may hold a password.
      secret: true,
      read: readUrl,
    },
  },
  open: async (settings, { clock }) => {
    const { createMangopayProvider } = await import('./provider.ts');
    return createMangopayProvider(settings, clock.nowMs);
  },
};

function readUrl(text: string, environment: () => Environment): string {
  const own = origins[environment()];
  if (text === originOfEnvironment) return own;
  const origin = readOrigin(text, own, environment);
  if (environment() === 'sandbox' && origin === origins.production) {
    throw new SettingError(`must not be ${origin} in a sandbox: that moves real money`);
  }
  return origin;
}
