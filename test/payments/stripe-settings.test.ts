import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import type { StripeSettings } from '../../src/payments/stripe/client.ts';
import { stripe } from '../../src/payments/stripe/settings.ts';
import { naming } from '../support/config-error.ts';

describe('Stripe', () => {
  /** The settings of a sandbox at Stripe. */
  const atStripe = {
    ARTSEAL_PAYMENT_PROVIDER: 'stripe',
    ARTSEAL_STRIPE_API_KEY: 'sk_test_51Abc',
    ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_Abc+/=',
  };
  const settingsOf = (env: NodeJS.ProcessEnv) => readConfig(env).providerSettings as StripeSettings;
  const live = {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY: '0123456789abcdef'.repeat(4),
    ARTSEAL_STRIPE_API_KEY: 'rk_live_51Abc',
  };

  test('is set up by its settings', () => {
    const config = readConfig(atStripe);
    assert.equal(config.provider, stripe);
    assert.deepEqual(config.providerSettings, {
      apiKey: 'sk_test_51Abc',
      webhookSecret: 'whsec_Abc+/=',
      url: 'https://api.stripe.com',
      returnUrl: undefined,
    });
    assert.equal(settingsOf({ ...atStripe, ...live }).apiKey, 'rk_live_51Abc');
  });

  for (const name of ['API_KEY', 'WEBHOOK_SECRET']) {
    test(`needs ARTSEAL_STRIPE_${name}`, () => {
      const variable = `ARTSEAL_STRIPE_${name}`;
      for (const value of [undefined, '']) {
        assert.throws(
          () => readConfig({ ...atStripe, [variable]: value }),
          naming(`${variable} is required`),
        );
      }
    });
  }

  test('takes a key of its environment alone, and repeats no secret', () => {
    const withoutSecret = (variable: string, secret: string) => (error: unknown) =>
      naming(variable)(error) && !(error as Error).message.includes(secret.slice(-6));
    const refuseKey = (env: NodeJS.ProcessEnv, key: string) => {
      const refused = withoutSecret('ARTSEAL_STRIPE_API_KEY', key);
      assert.throws(() => readConfig({ ...atStripe, ...env, ARTSEAL_STRIPE_API_KEY: key }), refused, key);
    };
    for (const key of ['sk_live_51Abc', 'rk_live_51Abc', 'pk_test_51Abc', 'sk_test_a secret']) {
      refuseKey({}, key);
    }
    for (const key of ['sk_test_51Abc', 'rk_test_51Abc', 'sk_live_51Abc\n']) refuseKey(live, key);
    for (const secret of ['secret-of-mine', 'whsec_a b c d e f']) {
      const refused = withoutSecret('ARTSEAL_STRIPE_WEBHOOK_SECRET', secret);
      assert.throws(
        () => readConfig({ ...atStripe, ARTSEAL_STRIPE_WEBHOOK_SECRET: secret }),
        refused,
        secret,
      );
    }
  });

  test('is https, but for a stand-in on this machine', () => {
    const url = (text: string, env = {}) => settingsOf({ ...atStripe, ...env, ARTSEAL_STRIPE_URL: text }).url;
    for (const text of [
      'https://stripe.example:8443',
      'http://127.0.0.1:12111',
      'http://localhost:1',
      'http://[::1]:1',
    ]) {
      assert.equal(url(text), text);
    }
    assert.equal(url('https://api.stripe.com/', live), 'https://api.stripe.com');
    for (const text of [
      'http://api.stripe.com',
      'http://localhost.example',
      'http://127.0.0.1.example',
      'ftp://127.0.0.1',
      'file:///etc/passwd',
      'api.stripe.com',
      'https://user:secret@api.stripe.com',
      'https://api.stripe.com/v1',
      'https://api.stripe.com/?a',
    ]) {
      assert.throws(() => url(text), naming('ARTSEAL_STRIPE_URL'), text);
    }
    for (const text of ['http://127.0.0.1:1', 'https://stripe.example', 'https://api.stripe.com:8443']) {
      assert.throws(() => url(text, live), naming('ARTSEAL_STRIPE_URL'), text);
    }
  });

  test('has a page for buyers to come back to, https, but in a sandbox on this machine; or none', () => {
    const returnUrl = (text: string, env = {}) =>
      settingsOf({ ...atStripe, ...env, ARTSEAL_STRIPE_RETURN_URL: text }).returnUrl;
    const page = 'https://platform.example/paid?order=1';
    assert.equal(returnUrl(page), page);
    assert.equal(returnUrl(page, live), page);
    assert.equal(returnUrl('http://127.0.0.1:8080/paid'), 'http://127.0.0.1:8080/paid');
    for (const text of ['', 'none']) assert.equal(returnUrl(text), undefined);
    for (const text of ['platform.example', 'http://platform.example', 'https://me:word@platform.example'])
      assert.throws(() => returnUrl(text), naming('ARTSEAL_STRIPE_RETURN_URL'), text);
    assert.throws(() => returnUrl('http://127.0.0.1:1', live), naming('ARTSEAL_STRIPE_RETURN_URL'));
  });

  test('is refused with a currency that it does not charge', () => {
    for (const code of ['CUP', 'IRR', 'XAU'])
      assert.throws(() => readConfig({ ...atStripe, ARTSEAL_CURRENCY: code }), /does not take|ISO 4217/);
    for (const code of ['CNY', 'USD', 'KWD', 'HKD'])
      assert.equal(readConfig({ ...atStripe, ARTSEAL_CURRENCY: code }).currency, code);
  });

  test('is refused with a currency whose minor unit it counts otherwise', () => {
    for (const code of ['ISK', 'UGX', 'MGA']) {
      assert.throws(() => readConfig({ ...atStripe, ARTSEAL_CURRENCY: code }), naming('ARTSEAL_CURRENCY'));
      assert.equal(readConfig({ ARTSEAL_CURRENCY: code }).currency, code);
    }
  });
});
