import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { instruct, lookUp } from './provider-suite.ts';
import { opened } from './stripe-support.ts';

const returnUrl = 'https://artseal.example/back?order=1';

/** An order whose buyer has to confirm, with the response to its FREEZE. */
async function asked(t: TestContext) {
  const at = await opened(t, { returnUrl });
  const order = at.order('authentication');
  const answered = await instruct(at.provider, order, 'FREEZE');
  return { ...at, order, answered };
}

describe('a card whose issuer wants the buyer to confirm', () => {
  test('is AWAITING_BUYER at the page of Stripe, which leads back to the return URL', async (t) => {
    const { standIn, answered } = await asked(t);
    assert.deepEqual(answered, {
      status: 'AWAITING_BUYER',
      nextActionUrl: `${standIn.url}/3ds/pi_1`,
      reference: 'acct_1/pi_1',
    });
    const made = standIn.requests.find(({ path }) => path === '/v1/payment_intents');
    assert.equal(made?.params.return_url, returnUrl);
    assert.equal(made.params.off_session, undefined);
  });

  test('is ABSENT if the buyer failed, and VOID with the reason after a second FREEZE', async (t) => {
    const { standIn, provider, order } = await asked(t);
    standIn.authenticate('pi_1', false);
    assert.equal((await lookUp(provider, order)).status, 'ABSENT');
    const { status, declined } = await instruct(provider, order, 'FREEZE');
    assert.equal(status, 'VOID');
    assert.equal(declined?.code, 'payment_intent_authentication_failure');
    assert.match(declined.words, /did not confirm/);
  });

  test('cannot be released: it stays AWAITING_BUYER', async (t) => {
    const { provider, order, answered } = await asked(t);
    assert.deepEqual(await instruct(provider, order, 'RELEASE'), answered);
  });

  test("is not VOID if the seller's account gives no access any more: the buyer may still confirm", async (t) => {
    const { standIn, provider, order, answered } = await asked(t);
    const known = { ...order, reference: answered.reference };
    standIn.failNext(/./, { status: 403, code: 'account_invalid' });
    await assert.rejects(instruct(provider, known, 'FREEZE'), /account_invalid/);
    assert.deepEqual(await instruct(provider, known, 'FREEZE'), answered);
    assert.equal(standIn.requests.at(-1)?.method, 'GET');
  });

  test('is ABSENT, then VOID, if there is no page to confirm at', async (t) => {
    const { standIn, provider, order } = await asked(t);
    const [intent = assert.fail()] = standIn.intents;
    const redirect_to_url = { url: 'javascript:alert(1)' };
    intent.next_action = { type: 'redirect_to_url', redirect_to_url };
    assert.deepEqual(await lookUp(provider, order), { status: 'ABSENT' });
    const { status, declined } = await instruct(provider, order, 'FREEZE');
    assert.deepEqual([status, declined?.code], ['VOID', 'authentication_required']);
  });

  test('continues after the return URL was removed and set again', async (t) => {
    const { standIn, provider, order, answered } = await asked(t);
    const { createStripeProvider } = await import('../../src/payments/stripe/provider.ts');
    const without = createStripeProvider({ ...standIn, returnUrl: undefined });
    t.after(() => without.close());
    assert.deepEqual(await instruct(without, order, 'FREEZE'), answered);
    standIn.authenticate('pi_1', true);
    assert.equal((await instruct(provider, order, 'FREEZE')).status, 'HELD');
  });
});
