import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { type StripeSettings, stripe } from '../../src/payment/stripe/settings.ts';
import { readConfig } from '../../src/settings/config.ts';
import { naming } from '../support/config-refused.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('Stripe', () => {
  const customer = { customer: 'cus_A1', paymentMethod: 'pm_card_visa' };
  const parties = { buyers: { '买方 1': customer }, sellers: { seller: 'acct_A1' } };

  /** The settings of a sandbox at Stripe, with the file of parties that is given. */
  function atStripe(t: TestContext, file: unknown = parties) {
    const partiesFile = join(temporaryFolder(t), 'parties.json');
    writeFileSync(partiesFile, typeof file === 'string' ? file : JSON.stringify(file));
    return {
      ARTSEAL_PAYMENT_INSTITUTION: 'stripe',
      ARTSEAL_STRIPE_API_KEY: 'sk_test_51Abc',
      ARTSEAL_STRIPE_WEBHOOK_SECRET: 'whsec_Abc+/=',
      ARTSEAL_STRIPE_PARTIES_FILE: partiesFile,
    };
  }
  const settingsOf = (env: NodeJS.ProcessEnv) => readConfig(env).institutionSettings as StripeSettings;
  const live = {
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY: '0123456789abcdef'.repeat(4),
    ARTSEAL_STRIPE_API_KEY: 'rk_live_51Abc',
  };

  test('is set up by its settings', (t) => {
    const config = readConfig(atStripe(t));
    assert.equal(config.institution, stripe);
    assert.deepEqual(config.institutionSettings, {
      apiKey: 'sk_test_51Abc',
      webhookSecret: 'whsec_Abc+/=',
      url: 'https://api.stripe.com',
      returnUrl: undefined,
      parties: { buyers: new Map([['买方 1', customer]]), sellers: new Map([['seller', 'acct_A1']]) },
    });
    assert.equal(settingsOf({ ...atStripe(t), ...live }).apiKey, 'rk_live_51Abc');
  });

  for (const name of ['API_KEY', 'WEBHOOK_SECRET', 'PARTIES_FILE']) {
    test(`needs ARTSEAL_STRIPE_${name}`, (t) => {
      const variable = `ARTSEAL_STRIPE_${name}`;
      for (const value of [undefined, '']) {
        assert.throws(
          () => readConfig({ ...atStripe(t), [variable]: value }),
          naming(`${variable} is required`),
        );
      }
    });
  }

  test('takes a key of its environment alone, and repeats no secret', (t) => {
    const withoutSecret = (variable: string, secret: string) => (error: unknown) =>
      naming(variable)(error) && !(error as Error).message.includes(secret.slice(-6));
    const refuseKey = (env: NodeJS.ProcessEnv, key: string) => {
      const refused = withoutSecret('ARTSEAL_STRIPE_API_KEY', key);
      assert.throws(() => readConfig({ ...atStripe(t), ...env, ARTSEAL_STRIPE_API_KEY: key }), refused, key);
    };
    for (const key of ['sk_live_51Abc', 'rk_live_51Abc', 'pk_test_51Abc', 'sk_test_a secret']) {
      refuseKey({}, key);
    }
    for (const key of ['sk_test_51Abc', 'rk_test_51Abc', 'sk_live_51Abc\n']) refuseKey(live, key);
    for (const secret of ['secret-of-mine', 'whsec_a b c d e f']) {
      const refused = withoutSecret('ARTSEAL_STRIPE_WEBHOOK_SECRET', secret);
      assert.throws(
        () => readConfig({ ...atStripe(t), ARTSEAL_STRIPE_WEBHOOK_SECRET: secret }),
        refused,
        secret,
      );
    }
  });

  test('is https, but for a stand-in on this machine', (t) => {
    const url = (text: string, env = {}) =>
      settingsOf({ ...atStripe(t), ...env, ARTSEAL_STRIPE_URL: text }).url;
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

  test('has a page for buyers to come back to, https, but in a sandbox on this machine; or none', (t) => {
    const returnUrl = (text: string, env = {}) =>
      settingsOf({ ...atStripe(t), ...env, ARTSEAL_STRIPE_RETURN_URL: text }).returnUrl;
    const page = 'https://platform.example/paid?order=1';
    assert.equal(returnUrl(page), page);
    assert.equal(returnUrl(page, live), page);
    assert.equal(returnUrl('http://127.0.0.1:8080/paid'), 'http://127.0.0.1:8080/paid');
    for (const text of ['', 'none']) assert.equal(returnUrl(text), undefined);
    for (const text of ['platform.example', 'http://platform.example', 'https://me:word@platform.example'])
      assert.throws(() => returnUrl(text), naming('ARTSEAL_STRIPE_RETURN_URL'), text);
    assert.throws(() => returnUrl('http://127.0.0.1:1', live), naming('ARTSEAL_STRIPE_RETURN_URL'));
  });

  test('is refused with a currency that it does not charge', (t) => {
    for (const code of ['CUP', 'IRR', 'XAU'])
      assert.throws(() => readConfig({ ...atStripe(t), ARTSEAL_CURRENCY: code }), /does not take|ISO 4217/);
    for (const code of ['CNY', 'USD', 'KWD', 'HKD'])
      assert.equal(readConfig({ ...atStripe(t), ARTSEAL_CURRENCY: code }).currency, code);
  });

  test('is refused with a currency whose minor unit it counts otherwise', (t) => {
    for (const code of ['ISK', 'UGX', 'MGA']) {
      assert.throws(() => readConfig({ ...atStripe(t), ARTSEAL_CURRENCY: code }), naming('ARTSEAL_CURRENCY'));
      assert.equal(readConfig({ ARTSEAL_CURRENCY: code }).currency, code);
    }
  });

  const files: readonly (readonly [string, unknown, RegExp])[] = [
    ['no JSON', '{"buyers', /must be JSON\.$/],
    ['a list', [], /the file must be an object/],
    ['nothing in it', {}, /the file must have the member buyers/],
    ['no sellers', { buyers: {} }, /the file must have the member sellers/],
    ['something else', { ...parties, notes: '' }, /unknown member "notes"; it takes buyers, sellers\.$/],
    ['a list of buyers', { ...parties, buyers: [] }, /buyers must be an object/],
    [
      'a buyer who is a customer alone',
      { ...parties, buyers: { b: 'cus_1' } },
      /buyers\["b"\] must be an object/,
    ],
    [
      'a buyer without a card',
      { ...parties, buyers: { b: { customer: 'cus_1' } } },
      /buyers\["b"\] must have the member paymentMethod/,
    ],
    [
      'a buyer with more',
      { ...parties, buyers: { b: { ...customer, email: '' } } },
      /unknown member "email" in buyers\["b"\]; it takes customer, paymentMethod/,
    ],
    [
      'a customer that is none',
      { ...parties, buyers: { b: { ...customer, customer: 'acct_1' } } },
      /buyers\["b"\]\.customer must be the id of a customer/,
    ],
    [
      'a card that is none',
      { ...parties, buyers: { b: { ...customer, paymentMethod: 7 } } },
      /buyers\["b"\]\.paymentMethod must be the id of a payment method/,
    ],
    [
      'an account that is none',
      { ...parties, sellers: { s: 'cus_1' } },
      /sellers\["s"\] must be the id of a connected account/,
    ],
    ['an empty id', { ...parties, sellers: { '': 'acct_1' } }, /the id of sellers\[""\]/],
    ['an id that is too long', { ...parties, sellers: { ['x'.repeat(129)]: 'acct_1' } }, /the id of sellers/],
  ];
  for (const [what, file, pattern] of files) {
    test(`is refused with a file of parties with ${what}`, (t) => {
      const env = atStripe(t, file);
      assert.throws(() => readConfig(env), naming('ARTSEAL_STRIPE_PARTIES_FILE'));
      assert.throws(() => readConfig(env), pattern);
    });
  }

  test('is refused with a file of parties that is not there', (t) => {
    const env = { ...atStripe(t), ARTSEAL_STRIPE_PARTIES_FILE: join(temporaryFolder(t), 'none') };
    assert.throws(() => readConfig(env), naming('ARTSEAL_STRIPE_PARTIES_FILE'));
  });
});
