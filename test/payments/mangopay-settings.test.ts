import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { readConfig } from '../../src/config/config.ts';
import type { MangopaySettings } from '../../src/payments/mangopay/client.ts';
import { mangopay } from '../../src/payments/mangopay/settings.ts';
import { naming } from '../support/config-error.ts';

describe('Mangopay', () => {
  const atMangopay = {
    ARTSEAL_PAYMENT_PROVIDER: 'mangopay',
    ARTSEAL_CURRENCY: 'EUR',
    ARTSEAL_MANGOPAY_CLIENT_ID: 'artseal-1',
    ARTSEAL_MANGOPAY_API_KEY: 'an-api-key-of-32-characters-1234',
    ARTSEAL_MANGOPAY_ESCROW_USER: 'user_m_01JRJM5RR5NYQDN0S6QWJJDRMR',
    ARTSEAL_MANGOPAY_HOOK_SECRET: '0123456789abcdef0123456789abcdef',
  };
  const production = {
    ...atMangopay,
    ARTSEAL_ENVIRONMENT: 'production',
    ARTSEAL_MASTER_KEY: '0123456789abcdef'.repeat(4),
  };
  const settingsOf = (env: NodeJS.ProcessEnv) => readConfig(env).providerSettings as MangopaySettings;

  test('is set up by its settings, and is where its environment is', () => {
    const config = readConfig(atMangopay);
    assert.equal(config.provider, mangopay);
    assert.deepEqual(config.providerSettings, {
      clientId: 'artseal-1',
      apiKey: 'an-api-key-of-32-characters-1234',
      escrowUser: 'user_m_01JRJM5RR5NYQDN0S6QWJJDRMR',
      hookSecret: '0123456789abcdef0123456789abcdef',
      url: 'https://api.sandbox.mangopay.com',
    });
    assert.equal(settingsOf(production).url, 'https://api.mangopay.com');
  });

  for (const name of ['CLIENT_ID', 'API_KEY', 'ESCROW_USER', 'HOOK_SECRET']) {
    const variable = `ARTSEAL_MANGOPAY_${name}`;
    test(`needs ${variable}, of the known form, and does not repeat a secret`, () => {
      const isSecret = name.endsWith('KEY') || name.endsWith('SECRET');
      for (const value of [undefined, '']) {
        assert.throws(
          () => readConfig({ ...atMangopay, [variable]: value }),
          naming(`${variable} is required`),
        );
      }
      for (const value of ['a b', 'x'.repeat(300), 'slash/and/what?', 'tail-of-mine\n']) {
        const refused = (error: unknown) =>
          naming(variable)(error) && !(isSecret && (error as Error).message.includes(value));
        assert.throws(() => readConfig({ ...atMangopay, [variable]: value }), refused, value);
      }
    });
  }

  test('is refused with a currency that there are no wallets in', () => {
    for (const currency of ['CNY', 'ISK']) {
      const other = { ...atMangopay, ARTSEAL_CURRENCY: currency };
      assert.throws(() => readConfig(other), naming('ARTSEAL_CURRENCY'));
    }
  });

  test('takes no secret that could be guessed', () => {
    const short = { ...atMangopay, ARTSEAL_MANGOPAY_HOOK_SECRET: 'x'.repeat(31) };
    assert.throws(() => readConfig(short), naming('ARTSEAL_MANGOPAY_HOOK_SECRET'));
  });

  test('is https, but for a stand-in on this machine, and never another one in production', () => {
    const url = (text: string, env: NodeJS.ProcessEnv = atMangopay) =>
      settingsOf({ ...env, ARTSEAL_MANGOPAY_URL: text }).url;
    for (const text of ['https://mangopay.example:8443', 'http://127.0.0.1:12111', 'http://[::1]:1']) {
      assert.equal(url(text), text);
    }
    assert.equal(url('https://api.mangopay.com/', production), 'https://api.mangopay.com');
    for (const text of [
      'http://api.sandbox.mangopay.com',
      'http://127.0.0.1.example',
      'file:///etc/passwd',
      'api.sandbox.mangopay.com',
      'https://user:secret@api.sandbox.mangopay.com',
      'https://api.sandbox.mangopay.com/v2.01',
      // Real money.
      'https://api.mangopay.com',
    ]) {
      assert.throws(() => url(text), naming('ARTSEAL_MANGOPAY_URL'), text);
    }
    for (const text of ['http://127.0.0.1:1', 'https://api.sandbox.mangopay.com']) {
      assert.throws(() => url(text, production), naming('ARTSEAL_MANGOPAY_URL'), text);
    }
  });

  test('names what a party of either role is registered with', () => {
    const { BUYER, SELLER } = mangopay.parties ?? assert.fail();
    for (const names of [BUYER, SELLER]) {
      assert.deepEqual(Object.keys(names), ['user', 'wallet']);
      for (const id of [
        'user_m_01JRJM5RR5NYQDN0S6QWJJDRMR',
        '4659626451',
        'wt_287afe02-498a-4076-b022-42e8997a172f',
      ])
        for (const rule of Object.values(names)) assert.match(id, rule.pattern);
      for (const id of ['', 'a/b', 'a b', 'x'.repeat(129), '../users'])
        for (const rule of Object.values(names)) assert.doesNotMatch(id, rule.pattern);
    }
  });
});
