import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PaymentSnapshot } from '../../src/domain/payment.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { instruct, lookUp } from './provider-suite.ts';
import { held } from './stripe-support.ts';

const amount = 1_250_000;

type Change = (standIn: StripeStandIn) => void;

/** A dispute over all, with this status. */
const dispute =
  (disputeStatus: string): Change =>
  (standIn) => {
    standIn.dispute('pi_1', amount).status = disputeStatus;
  };

/** What happens at Stripe to an order of `amount` after its release, and the payment after that. */
const cases: readonly (readonly [string, Change, PaymentSnapshot['status'], number])[] = [
  ['a dispute under_review', dispute('under_review'), 'DISPUTED', amount],
  ['a dispute warning_needs_response', dispute('warning_needs_response'), 'DISPUTED', amount],
  ['a dispute appeal_under_review', dispute('appeal_under_review'), 'DISPUTED', amount],
  ['a dispute of an unknown status', dispute('a_new_status'), 'DISPUTED', amount],
  ['a dispute warning_closed', dispute('warning_closed'), 'PAID_OUT', amount],
  ['a prevented dispute', dispute('prevented'), 'PAID_OUT', amount],
  [
    'a dispute over a part that was lost, after a refund of another',
    (standIn) => {
      standIn.refund('pi_1', 50_000);
      standIn.dispute('pi_1', 200_000).status = 'lost';
    },
    'PARTLY_RETURNED',
    1_000_000,
  ],
  [
    'a dispute over a part in another currency that was lost, of which it is not known how much it took',
    (standIn) => {
      Object.assign(standIn.dispute('pi_1', 1), { status: 'lost', currency: 'usd' });
    },
    'RETURNED',
    amount,
  ],
  [
    'a dispute that was prevented by a refund',
    (standIn) => {
      standIn.refund('pi_1', amount);
      standIn.dispute('pi_1', amount).status = 'prevented';
    },
    'RETURNED',
    amount,
  ],
  [
    'a dispute that was won, and another',
    (standIn) => {
      standIn.dispute('pi_1', amount).status = 'won';
      standIn.dispute('pi_1', amount);
    },
    'DISPUTED',
    amount,
  ],
];

describe('after a release', () => {
  for (const [what, change, status, left] of cases) {
    test(`${what}: ${status}`, async (t) => {
      const { standIn, provider, asked } = await held(t);
      const { reference } = await instruct(provider, asked, 'RELEASE');
      change(standIn);
      const expected = { status, amount: BigInt(left), currency: 'CNY', reference };
      assert.deepEqual(await lookUp(provider, asked), expected);
      // An instruction reports the same as a look-up.
      assert.deepEqual(await instruct(provider, { ...asked, reference }, 'RELEASE'), expected);
      assert.deepEqual(await instruct(provider, asked, 'FREEZE'), expected);
    });
  }

  test('disputes are read only for a charge that was ever disputed', async (t) => {
    const { standIn, provider, asked } = await held(t);
    await instruct(provider, asked, 'RELEASE');
    assert.equal(standIn.requests.filter(({ path }) => path === '/v1/disputes').length, 0);
  });

  test('what somebody else did not capture counts as no refund', async (t) => {
    const { standIn, provider, asked } = await held(t);
    await instruct(provider, { ...asked, amount: 1_000_000n }, 'RELEASE');
    assert.equal((await lookUp(provider, asked)).status, 'PAID_OUT');
    standIn.refund('pi_1', 400_000);
    const { status, amount: kept } = await lookUp(provider, asked);
    assert.deepEqual({ status, kept }, { status: 'PARTLY_RETURNED', kept: 600_000n });
  });
});

test('a hold has the time at which it lapses', async (t) => {
  const { standIn, provider, asked, frozen } = await held(t);
  const created = standIn.intents[0]?.created ?? 0;
  assert.equal(frozen.holdExpiresAtMs, (created + 7 * 24 * 3600) * 1000);
  assert.deepEqual(await lookUp(provider, asked), frozen);
});
