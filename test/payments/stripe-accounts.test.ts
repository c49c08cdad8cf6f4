import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type OpenInstruction, planUpdate } from '../../src/domain/order-update.ts';
import type { PaymentOrder } from '../../src/payments/provider.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { instruct, lookUp } from './provider-suite.ts';
import { opened } from './stripe-support.ts';

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
    const [intent] = standIn.intents;
    assert.equal(intent?.customer, null);
    assert.equal(intent?.transfer_data, null);
  });

  test('that its seller captured is a sale where a RELEASE is open alone, whatever the seller marks it with', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    await instruct(provider, asked, 'FREEZE');
    standIn.captureAsSeller('pi_1', { artseal_captured: 'yes', artseal_released: asked.holdId });
    const payment = await lookUp(provider, asked);
    assert.equal(payment.status, 'PAID_OUT');
    const { amount, currency } = asked;
    const frozen = {
      state: 'FROZEN',
      amount,
      currency,
      accepted: undefined,
      afterPayout: undefined,
      isInReview: false,
    } as const;
    const plan = (...open: OpenInstruction[]) => planUpdate({ ...frozen, open }, payment);
    assert.equal(plan().to, 'FROZEN');
    assert.match(plan().review ?? '', /FROZEN; the provider says PAID_OUT/);
    const release = { instructionId: 'released', kind: 'RELEASE', status: 'UNKNOWN' } as const;
    assert.deepEqual([plan(release).to, plan(release).review], ['RELEASED', undefined]);
  });

  test('without its reference it is looked for on the account, then where orders of before are', async (t) => {
    const { standIn, provider, order } = await opened(t);
    assert.deepEqual(await lookUp(provider, order()), { status: 'ABSENT' });
    const asked = standIn.requests.map(({ headers, params }) => [headers['stripe-account'], params.customer]);
    assert.deepEqual(asked, [
      ['acct_1', undefined],
      [undefined, 'cus_1'],
    ]);
  });

  test('a FREEZE that is given again clones the card once', async (t) => {
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

describe("an order of before, whose PaymentIntent is on the platform's own account", () => {
  /** Has the PaymentIntent of an order made as earlier versions had it made. */
  async function madeBefore(standIn: StripeStandIn, { holdId, amount }: PaymentOrder): Promise<void> {
    const body = new URLSearchParams({
      ...{ amount: String(amount), currency: 'cny', customer: 'cus_1', payment_method: 'pm_card_visa' },
      ...{ capture_method: 'manual', confirm: 'true', off_session: 'true' },
      ...{ 'metadata[artseal_hold]': holdId, 'transfer_data[destination]': 'acct_1' },
    });
    const headers = { authorization: `Bearer ${standIn.apiKey}`, 'stripe-version': '2026-10-28.endive' };
    const made = await fetch(`${standIn.url}/v1/payment_intents`, { method: 'POST', headers, body });
    assert.equal(made.status, 200, await made.text());
  }

  for (const [kind, status] of [
    ['RELEASE', 'PAID_OUT'],
    ['REFUND', 'RETURNED'],
    ['CANCEL', 'RETURNED'],
    ['FREEZE', 'HELD'],
  ] as const) {
    test(`${kind} with its reference and without: ${status}`, async (t) => {
      for (const reference of kind === 'FREEZE' ? [undefined] : ['pi_1', undefined]) {
        const { standIn, provider, order } = await opened(t);
        // A FREEZE is preceded by a look-up where the order is old, and recovery looks up first in any case.
        const asked = order('buyer', { reference, openedAtMs: Date.now() - 13 * 3_600_000 });
        await madeBefore(standIn, asked);
        assert.deepEqual((await lookUp(provider, asked)).reference, 'pi_1');
        assert.equal((await instruct(provider, asked, kind)).status, status);
        assert.equal(standIn.intents.length, 1);
      }
    });
  }
});
