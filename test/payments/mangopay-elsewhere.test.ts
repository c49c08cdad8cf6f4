import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { planUpdate } from '../../src/domain/order-update.ts';
import type { PaymentSnapshot } from '../../src/domain/payment.ts';
import type { PaymentOrder } from '../../src/payments/provider.ts';
import { amount, holdIn, opened } from './mangopay-support.ts';
import { instruct, lookUp } from './provider-suite.ts';

/** An order that is held, and where its money could go besides. */
async function held(t: TestContext) {
  const open = await opened(t);
  const { standIn, provider, order } = open;
  const asked = order();
  const { reference } = await instruct(provider, asked, 'FREEZE');
  const wallet = holdIn(standIn, asked).CreditedWalletId ?? assert.fail();
  const elsewhere = standIn.party('OWNER', 'EUR', 0).wallet;
  return { ...open, asked: { ...asked, reference }, wallet, elsewhere };
}

/** What a look at a FROZEN order comes to, with a RELEASE under way or without. */
function planOf({ amount: agreed, currency }: PaymentOrder, payment: PaymentSnapshot, isReleasing = false) {
  const release = { instructionId: 'release', kind: 'RELEASE', status: 'SENT' } as const;
  const open = isReleasing ? [release] : [];
  const order = { state: 'FROZEN', amount: agreed, currency, accepted: undefined, open } as const;
  return planUpdate({ ...order, afterPayout: undefined, isInReview: false }, payment);
}

type Held = Awaited<ReturnType<typeof held>>;

/** What staff do with the money of an order, what is still held then, and what is found. */
const acts: readonly (readonly [string, (held: Held) => unknown, number, RegExp])[] = [
  [
    'to a wallet of somebody else',
    ({ standIn, wallet, elsewhere }) => standIn.transferOutside(wallet, elsewhere, amount),
    0,
    /^transfer xfer_c_\w+ took 1250000 EUR to wallet wlt_m_\w+, which is not the seller's/,
  ],
  [
    'to a wallet of somebody else, with the tag of the order',
    ({ standIn, wallet, elsewhere, asked }) =>
      standIn.transferOutside(wallet, elsewhere, amount, asked.holdId),
    0,
    /to wallet wlt_m_\w+, which is not the seller's/,
  ],
  [
    'to the seller, without the tag of the order',
    ({ standIn, wallet, seller }) => standIn.transferOutside(wallet, seller.wallet, amount),
    0,
    /to the seller's wallet wlt_m_\w+, without the tag of the order/,
  ],
  [
    'a part of it to somebody else',
    ({ standIn, wallet, elsewhere }) => standIn.transferOutside(wallet, elsewhere, 50_000),
    amount - 50_000,
    /took 50000 EUR to wallet/,
  ],
  [
    'a part of it to the seller, with the tag of the order',
    ({ standIn, wallet, seller, asked }) =>
      standIn.transferOutside(wallet, seller.wallet, 50_000, asked.holdId),
    amount - 50_000,
    /took 50000 EUR to the seller's wallet wlt_m_\w+, a part of what is held/,
  ],
  [
    'to a bank account, by a payout that is under way',
    ({ standIn, wallet }) => standIn.payOutOutside(wallet, amount),
    0,
    /^payout po_\w+ took 1250000 EUR to a bank account/,
  ],
];

describe('staff move the money of an order', () => {
  for (const [what, act, left, found] of acts) {
    test(`${what}: a person has to look, and learns what was found`, async (t) => {
      const open = await held(t);
      const { provider, asked, seller, balance } = open;
      act(open);
      const atSeller = balance(seller.wallet);
      const payment = await lookUp(provider, asked);
      assert.deepEqual([payment.status, payment.amount], ['HELD', BigInt(left)]);
      assert.match(payment.declined?.detail ?? '', found);
      for (const isReleasing of [false, true]) {
        const { to, review, ended } = planOf(asked, payment, isReleasing);
        assert.deepEqual([to, ended], ['FROZEN', []]);
        assert.match(review ?? '', new RegExp(found.source.replace('^', '')));
      }
      // Nothing is added to it by a release of ours.
      assert.deepEqual(await instruct(provider, asked, 'RELEASE'), payment);
      assert.equal(balance(seller.wallet), atSeller);
      assert.deepEqual(await lookUp(provider, { ...asked, reference: undefined }), payment);
    });
  }

  test('to the seller with the tag of the order: a release only where one is under way', async (t) => {
    const { standIn, provider, asked, wallet, seller } = await held(t);
    standIn.transferOutside(wallet, seller.wallet, amount, asked.holdId);
    const payment = await lookUp(provider, asked);
    assert.deepEqual([payment.status, payment.amount], ['PAID_OUT', BigInt(amount)]);
    assert.match(planOf(asked, payment).review ?? '', /FROZEN; the provider says PAID_OUT/);
    assert.equal(planOf(asked, payment, true).to, 'RELEASED');
  });

  test('elsewhere and back: the order goes on', async (t) => {
    const { standIn, provider, asked, wallet, seller, elsewhere, balance } = await held(t);
    for (const to of [elsewhere, seller.wallet]) {
      standIn.refundOutside(standIn.transferOutside(wallet, to, amount).Id);
      const { status, amount: left } = await lookUp(provider, asked);
      assert.deepEqual([status, left], ['HELD', BigInt(amount)]);
    }
    const paid = await instruct(provider, asked, 'RELEASE');
    assert.deepEqual([paid.status, paid.amount], ['PAID_OUT', BigInt(amount)]);
    assert.equal(balance(seller.wallet), amount);
  });

  test('a part elsewhere: a refund gives back the rest, and is done once a person accepts that', async (t) => {
    const { standIn, provider, asked, wallet, elsewhere, buyers, balance } = await held(t);
    standIn.transferOutside(wallet, elsewhere, 50_000);
    const back = await instruct(provider, asked, 'REFUND');
    assert.deepEqual([back.status, back.amount], ['HELD', 0n]);
    assert.equal(balance(buyers.rich.wallet), 100 * amount - 50_000);
    assert.equal((await lookUp(provider, { ...asked, amount: 0n })).status, 'RETURNED');
  });

  test('all of it elsewhere: neither a refund nor a cancel moves anything', async (t) => {
    const { standIn, provider, asked, wallet, elsewhere } = await held(t);
    standIn.transferOutside(wallet, elsewhere, amount);
    const payment = await lookUp(provider, asked);
    const before = standIn.transfers.length;
    for (const kind of ['REFUND', 'CANCEL'] as const) {
      assert.deepEqual(await instruct(provider, asked, kind), payment);
    }
    assert.equal(standIn.transfers.length, before);
  });

  test('to the buyer: that is a refund', async (t) => {
    const { standIn, provider, asked, wallet, buyers } = await held(t);
    standIn.transferOutside(wallet, buyers.rich.wallet, amount);
    assert.equal((await lookUp(provider, asked)).status, 'RETURNED');
  });
});
