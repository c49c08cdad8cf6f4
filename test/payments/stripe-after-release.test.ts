import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { PaymentSnapshot } from '../../src/domain/payment.ts';
import type { StripeStandIn } from '../support/stripe-stand-in.ts';
import { instruct, lookUp } from './provider-suite.ts';
import { opened } from './stripe-support.ts';

const amount = 1_250_000;

/** What is done at Stripe after an order of `amount` was released, and what the provider then says of the money. */
const cases: readonly (readonly [
  string,
  (standIn: StripeStandIn) => void,
  PaymentSnapshot['status'],
  number,
])[] = [
  ['nothing', () => {}, 'PAID_OUT', amount],
  ['all of it is refunded', (standIn) => standIn.refund('pi_1', amount), 'RETURNED', amount],
  ['a part is refunded', (standIn) => standIn.refund('pi_1', 1), 'PARTLY_RETURNED', amount - 1],
  ['the buyer contests it', (standIn) => standIn.dispute('pi_1', amount), 'DISPUTED', amount],
  ...(['under_review', 'warning_needs_response', 'appeal_under_review', 'a_new_status'] as const).map(
    (status) =>
      [
        `the buyer contests it: ${status}`,
        (standIn: StripeStandIn) => {
          standIn.dispute('pi_1', amount).status = status;
        },
        'DISPUTED',
        amount,
      ] as const,
  ),
  ...(
    [
      ['lost', 'RETURNED', amount],
      ['won', 'PAID_OUT', amount],
      ['warning_closed', 'PAID_OUT', amount],
      ['prevented', 'PAID_OUT', amount],
    ] as const
  ).map(
    ([status, becomes, left]) =>
      [
        `a dispute that was ${status}`,
        (standIn: StripeStandIn) => {
          standIn.dispute('pi_1', amount).status = status;
        },
        becomes,
        left,
      ] as const,
  ),
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
      const { standIn, provider, order } = await opened(t);
      const asked = order();
      await instruct(provider, asked, 'FREEZE');
      const { reference } = await instruct(provider, asked, 'RELEASE');
      change(standIn);
      const expected = { status, amount: BigInt(left), currency: 'CNY', reference };
      assert.deepEqual(await lookUp(provider, asked), expected);
      // What an instruction answers is no other than what a look-up says.
      assert.deepEqual(await instruct(provider, { ...asked, reference }, 'RELEASE'), expected);
      assert.deepEqual(await instruct(provider, asked, 'FREEZE'), expected);
    });
  }

  test('only what was ever contested is asked about', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    await instruct(provider, asked, 'FREEZE');
    await instruct(provider, asked, 'RELEASE');
    assert.equal(standIn.requests.filter(({ path }) => path === '/v1/disputes').length, 0);
  });

  test('less was captured by somebody else: what was not is no refund', async (t) => {
    const { standIn, provider, order } = await opened(t);
    const asked = order();
    await instruct(provider, asked, 'FREEZE');
    await instruct(provider, { ...asked, amount: 1_000_000n }, 'RELEASE');
    assert.equal((await lookUp(provider, asked)).status, 'PAID_OUT');
    standIn.refund('pi_1', 400_000);
    const { status, amount: kept } = await lookUp(provider, asked);
    assert.deepEqual({ status, kept }, { status: 'PARTLY_RETURNED', kept: 600_000n });
  });
});

test('a hold says until when it is kept', async (t) => {
  const { standIn, provider, order } = await opened(t);
  const asked = order();
  const held = await instruct(provider, asked, 'FREEZE');
  const created = standIn.intents[0]?.created ?? 0;
  assert.equal(held.holdExpiresAtMs, (created + 7 * 24 * 3600) * 1000);
  assert.deepEqual(await lookUp(provider, asked), held);
});
