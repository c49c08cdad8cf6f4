import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { instruct, lookUp } from './provider-suite.ts';
import { held, opened } from './stripe-support.ts';

const accountsOf = (standIn: StripeStandIn) =>
  new Set(standIn.requests.map(({ headers }) => headers['stripe-account']));

describe('a direct charge', () => {
  test("is the seller's from the first request to the last", async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order('buyer', { seller: { account: 'acct_2' } });
    const { reference } = await instruct(provider, asked, 'FREEZE');
    assert.equal(reference, 'acct_2/pi_1');
    const known = { ...asked, reference };
    await lookUp(provider, known);
    await instruct(provider, known, 'RELEASE');
    standIn.dispute('pi_1', 1);
    assert.equal((await lookUp(provider, known)).status, 'DISPUTED');
    assert.deepEqual([...accountsOf(standIn)], ['acct_2']);
  });

  test('that its seller captured is PAID_OUT, whatever metadata the seller sets', async (t) => {
    const { standIn, provider, asked } = await held(t);
    standIn.captureAsSeller('pi_1', { artseal_captured: 'yes', artseal_released: asked.holdId });
    assert.equal((await lookUp(provider, asked)).status, 'PAID_OUT');
  });

  test('a FREEZE that is repeated clones the card once', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    standIn.failNext(/^POST \/v1\/payment_intents$/, 'lose-request');
    await assert.rejects(instruct(provider, asked, 'FREEZE'));
    assert.equal((await instruct(provider, asked, 'FREEZE')).status, 'HELD');
    standIn.failNext(/^POST \/v1\/payment_methods$/, 'lose-answer');
    const other = order();
    await assert.rejects(instruct(provider, other, 'FREEZE'));
    assert.equal((await instruct(provider, other, 'FREEZE')).status, 'HELD');
    const charged = standIn.requests.filter(({ params }) => params.amount !== undefined);
    assert.deepEqual(
      charged.map(({ params }) => params.payment_method),
      ['pm_clone1', 'pm_clone2'],
    );
  });
});
