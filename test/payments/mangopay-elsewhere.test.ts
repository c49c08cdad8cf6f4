import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { amount, held as heldAt } from './mangopay-support.ts';
import { instruct, lookUp } from './provider-suite.ts';

/** An order that is held, and a wallet where its money could go besides. */
async function held(t: TestContext) {
  const open = await heldAt(t);
  return { ...open, elsewhere: open.standIn.party('OWNER', 'EUR', 0).wallet };
}

type Tag = 'tagged' | 'untagged';

/** Where staff move an amount, with the tag of the order or without, and what is found. */
const moves: readonly (readonly ['elsewhere' | 'seller' | 'bank', number, Tag, RegExp])[] = [
  [
    'elsewhere',
    amount,
    'untagged',
    /^transfer xfer_c_\w+ took 1250000 EUR to wallet wlt_m_\w+, which is not the seller's/,
  ],
  ['elsewhere', amount, 'tagged', /to wallet wlt_m_\w+, which is not the seller's/],
  ['elsewhere', 50_000, 'untagged', /took 50000 EUR to wallet/],
  ['seller', amount, 'untagged', /to the seller's wallet wlt_m_\w+, without the tag of the order/],
  ['seller', 50_000, 'tagged', /took 50000 EUR to the seller's wallet wlt_m_\w+, a part of what is held/],
  ['bank', amount, 'untagged', /^payout po_\w+ took 1250000 EUR to a bank account/],
];

describe('staff move the money of an order', () => {
  for (const [to, moved, tag, found] of moves) {
    test(`${moved} to ${to}, ${tag}: less is HELD, with what was found, and no release adds to it`, async (t) => {
      const { standIn, provider, known, wallet, elsewhere, seller, balance } = await held(t);
      if (to === 'bank') standIn.payOutOutside(wallet, moved);
      else {
        const target = to === 'seller' ? seller.wallet : elsewhere;
        standIn.transferOutside(wallet, target, moved, tag === 'tagged' ? known.holdId : undefined);
      }
      const atSeller = balance(seller.wallet);
      const payment = await lookUp(provider, known);
      assert.deepEqual([payment.status, payment.amount], ['HELD', BigInt(amount - moved)]);
      assert.match(payment.declined?.detail ?? '', found);
      assert.deepEqual(await instruct(provider, known, 'RELEASE'), payment);
      assert.equal(balance(seller.wallet), atSeller);
      assert.deepEqual(await lookUp(provider, { ...known, reference: undefined }), payment);
    });
  }

  test('to the seller with the tag of the order: that is a release', async (t) => {
    const { standIn, provider, known, wallet, seller } = await held(t);
    standIn.transferOutside(wallet, seller.wallet, amount, known.holdId);
    const payment = await lookUp(provider, known);
    assert.deepEqual([payment.status, payment.amount], ['PAID_OUT', BigInt(amount)]);
  });

  test('elsewhere and back: the order continues', async (t) => {
    const { standIn, provider, known, wallet, seller, elsewhere, balance } = await held(t);
    for (const to of [elsewhere, seller.wallet]) {
      standIn.refundOutside(standIn.transferOutside(wallet, to, amount).Id);
      const { status, amount: left } = await lookUp(provider, known);
      assert.deepEqual([status, left], ['HELD', BigInt(amount)]);
    }
    const paid = await instruct(provider, known, 'RELEASE');
    assert.deepEqual([paid.status, paid.amount], ['PAID_OUT', BigInt(amount)]);
    assert.equal(balance(seller.wallet), amount);
  });

  test('a part elsewhere: a refund gives back the rest, and is done once a person accepts that', async (t) => {
    const { standIn, provider, known, wallet, elsewhere, buyers, balance } = await held(t);
    standIn.transferOutside(wallet, elsewhere, 50_000);
    const back = await instruct(provider, known, 'REFUND');
    assert.deepEqual([back.status, back.amount], ['HELD', 0n]);
    assert.equal(balance(buyers.rich.wallet), 100 * amount - 50_000);
    assert.equal((await lookUp(provider, { ...known, amount: 0n })).status, 'RETURNED');
  });

  test('all of it elsewhere: neither a refund nor a cancel moves anything', async (t) => {
    const { standIn, provider, known, wallet, elsewhere } = await held(t);
    standIn.transferOutside(wallet, elsewhere, amount);
    const payment = await lookUp(provider, known);
    const before = standIn.transfers.length;
    for (const kind of ['REFUND', 'CANCEL'] as const) {
      assert.deepEqual(await instruct(provider, known, kind), payment);
    }
    assert.equal(standIn.transfers.length, before);
  });

  test('to the buyer: that is a refund', async (t) => {
    const { standIn, provider, known, wallet, buyers } = await held(t);
    standIn.transferOutside(wallet, buyers.rich.wallet, amount);
    assert.equal((await lookUp(provider, known)).status, 'RETURNED');
  });
});
