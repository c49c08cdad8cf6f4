import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PaymentSnapshot } from '../../src/domain/payment.ts';
import { instruct, lookUp } from './provider-suite.ts';
import { held } from './stripe-support.ts';

const amount = 1_250_000;

type Dispute = readonly [amount: number, status: string, currency?: string];

/** What was refunded and disputed of an order of `amount` after its release, the status after that, and what is left. */
const cases: readonly (readonly [number, readonly Dispute[], PaymentSnapshot['status'], number])[] = [
  [0, [[amount, 'under_review']], 'DISPUTED', amount],
  [0, [[amount, 'warning_needs_response']], 'DISPUTED', amount],
  [0, [[amount, 'appeal_under_review']], 'DISPUTED', amount],
  [0, [[amount, 'a_new_status']], 'DISPUTED', amount],
  [0, [[amount, 'warning_closed']], 'PAID_OUT', amount],
  [0, [[amount, 'prevented']], 'PAID_OUT', amount],
  [50_000, [[200_000, 'lost']], 'PARTLY_RETURNED', 1_000_000],
  // In another currency it is not known how much it took.
  [0, [[1, 'lost', 'usd']], 'RETURNED', amount],
  [amount, [[amount, 'prevented']], 'RETURNED', amount],
  [
    0,
    [
      [amount, 'won'],
      [amount, 'needs_response'],
    ],
    'DISPUTED',
    amount,
  ],
];

describe('after a release', () => {
  for (const [refunded, disputes, status, left] of cases) {
    const shown = disputes.map((dispute) => dispute.join(' ')).join(', ');
    test(`${refunded} refunded, disputes ${shown}: ${status}`, async (t) => {
      const { standIn, provider, asked } = await held(t);
      const { reference } = await instruct(provider, asked, 'RELEASE');
      standIn.refund('pi_1', refunded);
      for (const [disputed, disputeStatus, currency = 'cny'] of disputes) {
        Object.assign(standIn.dispute('pi_1', disputed), { status: disputeStatus, currency });
      }
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
