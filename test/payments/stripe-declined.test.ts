import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { inspect } from 'node:util';
import type { PaymentOrder } from '../../src/payments/provider.ts';
import { declinedFor } from '../../src/payments/stripe/declined.ts';
import { heldUp } from './http-suite.ts';
import { instruct, lookUp } from './provider-suite.ts';
import { held, opened } from './stripe-support.ts';

describe('why Stripe declined', () => {
  const rejections: readonly (readonly [string, Partial<PaymentOrder>, string, RegExp])[] = [
    ['insufficient', {}, 'insufficient_funds', /not enough money/],
    ['declined', {}, 'generic_decline', /without saying why/],
    ['stolen', {}, 'generic_decline', /without saying why/],
    ['authentication', {}, 'authentication_required', /cannot be asked here/],
    ['action', {}, 'authentication_required', /cannot be asked here/],
    ['unknown-customer', {}, 'resource_missing', /does not take this payment/],
    ['unknown-card', {}, 'resource_missing', /does not take this payment/],
    ['buyer', { seller: { account: 'acct_9' } }, 'account_invalid', /./],
    ['buyer', { currency: 'XPF' }, 'StripeInvalidRequestError', /./],
    ['buyer', { amount: 1n }, 'amount_too_small', /./],
    ['buyer', { amount: 100_000_000n }, 'amount_too_large', /./],
  ];
  for (const [buyer, more, code, words] of rejections) {
    test(`${buyer} ${Object.keys(more)}: VOID with ${code} each time, and no hold stays`, async (t) => {
      const { standIn, provider, order } = await opened(t);
      const asked = order(buyer, more);
      for (let sent = 0; sent < 3; sent += 1) {
        const { status, declined } = await instruct(provider, asked, 'FREEZE');
        assert.equal(status, 'VOID');
        // An action that was only requested leaves no error at Stripe to read again.
        if (buyer === 'action' && sent > 0) continue;
        assert.equal(declined?.code, code);
        assert.match(declined.words, words);
      }
      const uncancelled = standIn.intents.filter(({ status }) => status !== 'canceled');
      assert.deepEqual(uncancelled, []);
    });
  }

  test('a concealed code is only in the details for the operator', async (t) => {
    const { provider, order } = await opened(t);
    const { declined } = await instruct(provider, order('stolen'), 'FREEZE');
    assert.match(declined?.detail ?? '', /card_declined.*stolen_card.*req_standin/);
    assert.doesNotMatch(`${declined?.code} ${declined?.words}`, /stolen/);
    const unsaid = await instruct(provider, order('declined'), 'FREEZE');
    assert.equal(declined?.words, unsaid.declined?.words);
    assert.equal(declined?.code, unsaid.declined?.code);
  });

  test('has no number of a card, customer or secret', async (t) => {
    const { provider, order } = await opened(t);
    for (const buyer of ['insufficient', 'unknown-customer', 'unknown-card']) {
      const { declined } = await instruct(provider, order(buyer), 'FREEZE');
      assert.doesNotMatch(inspect(declined), /4242|cus_\w|pm_\w|secret_\w/);
    }
    const { detail } = declinedFor({
      type: 'invalid_request_error',
      message:
        "No such customer: 'cus_A1b2'; card 4000-0000-0000-0002 of a.b@example.com, sk_test_1aZ, seti_1_secret_x",
    });
    assert.equal(
      detail,
      "Stripe, type invalid_request_error, No such customer: 'cus_…'; card … of … sk_…, seti_…",
    );
  });

  test('comes with a declined RELEASE, and not with one that was carried out', async (t) => {
    const { provider, asked } = await held(t);
    const kept = await instruct(provider, { ...asked, amount: 2_000_000n }, 'RELEASE');
    assert.equal(kept.status, 'HELD');
    assert.equal(kept.declined?.code, 'amount_too_large');
    assert.equal((await instruct(provider, asked, 'RELEASE')).declined, undefined);
  });

  test('a look-up of a declined order has the reason too', async (t) => {
    const { provider, order } = await opened(t);
    const asked = order('insufficient');
    await instruct(provider, asked, 'FREEZE');
    assert.equal((await lookUp(provider, asked)).declined?.code, 'insufficient_funds');
  });
});

describe('a rejection that Stripe does not save ends the order at once', () => {
  test('a customer that is unknown: VOID with the reason, and the key is used up', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order('unknown-customer');
    for (let sent = 0; sent < 2; sent += 1)
      standIn.failNext(/^POST \/v1\/payment_methods$/, { status: 400, code: 'resource_missing' });
    const { status, declined } = await instruct(provider, asked, 'FREEZE');
    assert.equal(status, 'VOID');
    assert.equal(declined?.code, 'resource_missing');
    assert.deepEqual(
      standIn.intents.map((intent) => intent.status),
      ['canceled'],
    );
    // The customer exists again and the FREEZE arrives once more: it has no effect.
    standIn.customers.add('cus_gone');
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'VOID');
  });

  test('a customer that is unknown, and the response was lost: CANCEL ends it', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order('unknown-customer');
    standIn.failNext(/^POST \/v1\/payment_methods$/, 'lose-answer');
    await assert.rejects(instruct(provider, asked, 'FREEZE'));
    assert.deepEqual(await lookUp(provider, asked), { status: 'ABSENT' });
    assert.equal((await instruct(provider, asked, 'CANCEL')).status, 'VOID');
  });

  test('a FREEZE that is still being carried out: not known yet', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(/^POST \/v1\/payment_intents$/, { until: wait });
    const first = instruct(provider, asked, 'FREEZE');
    await there;
    for (let sent = 0; sent < 2; sent += 1)
      standIn.failNext(/^POST \/v1\/payment_methods$/, { status: 400, code: 'resource_missing' });
    await assert.rejects(instruct(provider, asked, 'FREEZE'), /StripeIdempotencyError/);
    letThrough();
    assert.equal((await first).status, 'HELD');
  });

  test('only a FREEZE of an unknown account is VOID; other calls fail', async (t) => {
    const { provider, order } = await opened(t);
    const asked = order('buyer', { seller: { account: 'acct_9' } });
    // It says nothing of the credentials.
    const unknown = { kind: 'FAILED', message: /account_invalid/ };
    await assert.rejects(lookUp(provider, asked), unknown);
    await assert.rejects(instruct(provider, asked, 'CANCEL'), unknown);
  });
});
