import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import { mangopay } from '../../src/payments/mangopay/settings.ts';
import type { ProviderKind, Setting } from '../../src/payments/provider.ts';
import { stripe } from '../../src/payments/stripe/settings.ts';
import { naming } from '../support/config-error.ts';

type Values = Readonly<Record<string, string>>;

const production = { ARTSEAL_ENVIRONMENT: 'production', ARTSEAL_MASTER_KEY: '0123456789abcdef'.repeat(4) };

/** The settings of a sandbox at each provider, and what differs in production. */
const deployments = {
  stripe: {
    kind: stripe as ProviderKind,
    sandbox: {
      ARTSEAL_PAYMENT_PROVIDER: 'stripe',
      ARTSEAL_STRIPE_API_KEY: 'sk_test_51Abc',
      ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_Abc+/=',
    },
    live: { ...production, ARTSEAL_STRIPE_API_KEY: 'rk_live_51Abc' },
    values: {
      apiKey: 'sk_test_51Abc',
      webhookSecret: 'whsec_Abc+/=',
      url: 'https://api.stripe.com',
      returnUrl: undefined,
    },
    currencies: { good: ['CNY', 'USD', 'KWD', 'HKD'], bad: ['CUP', 'IRR', 'ISK', 'UGX', 'MGA'] },
  },
  mangopay: {
    kind: mangopay as ProviderKind,
    sandbox: {
      ARTSEAL_PAYMENT_PROVIDER: 'mangopay',
      ARTSEAL_CURRENCY: 'EUR',
      ARTSEAL_MANGOPAY_CLIENT_ID: 'artseal-1',
      ARTSEAL_MANGOPAY_API_KEY: 'an-api-key-of-32-characters-1234',
      ARTSEAL_MANGOPAY_ESCROW_USER: 'user_m_01JRJM5RR5NYQDN0S6QWJJDRMR',
      ARTSEAL_MANGOPAY_HOOK_SECRET: '0123456789abcdef0123456789abcdef',
    },
    live: production,
    values: {
      clientId: 'artseal-1',
      apiKey: 'an-api-key-of-32-characters-1234',
      escrowUser: 'user_m_01JRJM5RR5NYQDN0S6QWJJDRMR',
      hookSecret: '0123456789abcdef0123456789abcdef',
      url: 'https://api.sandbox.mangopay.com',
    },
    currencies: { good: ['EUR', 'USD'], bad: ['CNY', 'ISK'] },
  },
} as const;

/** Addresses of the stand-ins of tests, and addresses that are none or would send credentials in the clear. */
const standIns = [
  'https://provider.example:8443',
  'http://127.0.0.1:12111',
  'http://localhost:1',
  'http://[::1]:1',
];
const noOrigins = [
  ...['http://api.stripe.com', 'http://api.sandbox.mangopay.com', 'http://localhost.example'],
  ...['http://127.0.0.1.example', 'ftp://127.0.0.1', 'file:///etc/passwd', 'api.stripe.com'],
  ...['https://user:secret@api.stripe.com', 'https://api.stripe.com/v1', 'https://api.stripe.com/?a'],
];
const page = 'https://platform.example/paid?order=1';
const malformed = ['a b', 'x'.repeat(300), 'slash/and/what?', 'tail-of-mine\n'];
const liveKeys = ['sk_live_51Abc', 'rk_live_51Abc'];
const testKeys = ['sk_test_51Abc', 'rk_test_51Abc'];

/** Values that a setting has in a sandbox or in production, and values that it cannot have. */
const table: readonly (readonly [
  keyof typeof deployments,
  member: string,
  environment: 'sandbox' | 'production',
  good: readonly string[],
  bad: readonly string[],
])[] = [
  ['stripe', 'apiKey', 'sandbox', testKeys, [...liveKeys, 'pk_test_51Abc', 'sk_test_a secret']],
  ['stripe', 'apiKey', 'production', liveKeys, [...testKeys, 'sk_live_51Abc\n']],
  ['stripe', 'webhookSecret', 'sandbox', ['whsec_Abc+/='], ['secret-of-mine', 'whsec_a b c d e f']],
  ['stripe', 'url', 'sandbox', standIns, noOrigins],
  ['stripe', 'url', 'production', ['https://api.stripe.com'], [...standIns, 'https://api.stripe.com:8443']],
  [
    ...(['stripe', 'returnUrl', 'sandbox', [page, 'http://127.0.0.1:8080/paid']] as const),
    ['platform.example', 'http://platform.example', 'https://me:word@platform.example'],
  ],
  ['stripe', 'returnUrl', 'production', [page], ['http://127.0.0.1:1']],
  ['mangopay', 'clientId', 'sandbox', ['artseal-1'], malformed],
  ['mangopay', 'apiKey', 'sandbox', ['x'.repeat(16)], malformed],
  ['mangopay', 'escrowUser', 'sandbox', ['4659626451'], malformed],
  ['mangopay', 'hookSecret', 'sandbox', ['x'.repeat(32)], [...malformed, 'x'.repeat(31)]],
  // The address of production moves real money.
  ['mangopay', 'url', 'sandbox', standIns, [...noOrigins, 'https://api.mangopay.com']],
  [
    ...(['mangopay', 'url', 'production', ['https://api.mangopay.com']] as const),
    [...standIns, 'https://api.sandbox.mangopay.com'],
  ],
];

for (const [name, { kind, sandbox, live, values, currencies }] of Object.entries(deployments)) {
  const read = (env: Values) => readConfig({ ...sandbox, ...env });

  describe(`settings of ${name}`, () => {
    test('lead to the provider, in a sandbox and in production', () => {
      const config = read({});
      assert.equal(config.provider, kind);
      assert.deepEqual(config.providerSettings, values);
      assert.equal(read(live).provider, kind);
    });

    for (const { variable, fallback } of Object.values<Setting>(kind.settings)) {
      if (fallback !== '') continue;
      test(`${variable} is required`, () => {
        assert.throws(() => read({ [variable]: '' }), naming(`${variable} is required`));
        const { [variable]: _, ...others } = sandbox as Values;
        assert.throws(() => readConfig(others), naming(`${variable} is required`));
      });
    }

    for (const [of, member, environment, good, bad] of table) {
      if (of !== name) continue;
      const { variable, secret } = kind.settings[member as keyof typeof kind.settings] ?? assert.fail();
      test(`${variable} in ${environment}, whose value no message repeats if it is secret`, () => {
        const base = environment === 'production' ? live : {};
        const valueIn = (text: string) =>
          (read({ ...base, [variable]: text }).providerSettings as Values)[member];
        for (const text of good) assert.equal(valueIn(text), text);
        for (const text of bad) {
          // An address is secret for the password that it may hold.
          const hidden = member === 'url' ? 'secret@' : text.slice(-6);
          const rejected = (error: unknown) =>
            naming(variable)(error) && !(secret && (error as Error).message.includes(hidden));
          assert.throws(() => valueIn(text), rejected, text);
        }
      });
    }

    test('a currency that the provider does not take, or counts in other units, is rejected', () => {
      for (const code of currencies.good) assert.equal(read({ ARTSEAL_CURRENCY: code }).currency, code);
      for (const code of currencies.bad)
        assert.throws(() => read({ ARTSEAL_CURRENCY: code }), naming('ARTSEAL_CURRENCY'), code);
    });
  });
}

test('an address of Stripe loses its slash, and "none" or nothing is no return page', () => {
  const read = (env: Values) =>
    readConfig({ ...deployments.stripe.sandbox, ...env }).providerSettings as Values;
  assert.equal(read({ ARTSEAL_STRIPE_URL: 'https://api.stripe.com/' }).url, 'https://api.stripe.com');
  for (const text of ['', 'none'])
    assert.equal(read({ ARTSEAL_STRIPE_RETURN_URL: text }).returnUrl, undefined);
});

test('currencies that Stripe counts in other units are taken by the simulated provider', () => {
  for (const code of stripe.otherUnits) assert.equal(readConfig({ ARTSEAL_CURRENCY: code }).currency, code);
});

test('parties of Mangopay are registered by user and wallet, in either role', () => {
  const { BUYER, SELLER } = mangopay.parties ?? assert.fail();
  for (const ids of [BUYER, SELLER]) {
    assert.deepEqual(Object.keys(ids), ['user', 'wallet']);
    for (const { pattern } of Object.values(ids)) {
      for (const id of ['user_m_01JRJM5RR5NYQDN0S6QWJJDRMR', '4659626451', 'wt_287afe02-498a']) {
        assert.match(id, pattern);
      }
      for (const id of ['', 'a/b', 'a b', 'x'.repeat(129), '../users']) assert.doesNotMatch(id, pattern);
    }
  }
});
