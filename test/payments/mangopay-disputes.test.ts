import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import type { PaymentOrder } from '../../src/payments/provider.ts';
import { heldUp } from './http-suite.ts';
import { amount, held as heldAt, holdIn, hook } from './mangopay-support.ts';
import { instruct, lookUp } from './provider-suite.ts';

/** An order that is held, and what a look-up finds of it. */
async function held(t: TestContext) {
  const open = await heldAt(t);
  const found = async (which: PaymentOrder = open.known) => {
    const { status, amount: sum } = await lookUp(open.provider, which);
    return [status, sum];
  };
  return { ...open, found };
}

const money = (Amount: number) => ({ Currency: 'EUR', Amount });

describe('a pay-in that is disputed before the release', () => {
  test('blocks the release while the dispute is open', async (t) => {
    const { standIn, provider, known, payIn, seller, balance, found } = await held(t);
    const { Id } = standIn.dispute(payIn.Id);
    const refused = await instruct(provider, known, 'RELEASE');
    assert.deepEqual([refused.status, refused.amount], ['HELD', BigInt(amount)]);
    assert.equal(refused.declined?.detail, `dispute ${Id} of pay-in ${payIn.Id} is PENDING_CLIENT_ACTION`);
    assert.match(refused.declined?.words ?? '', /^The buyer contests a payment .* until that is decided\.$/);
    assert.deepEqual(await found(), ['HELD', BigInt(amount)]);
    assert.equal(balance(seller.wallet), 0);
    standIn.endDispute(Id, 'WON');
    assert.equal((await instruct(provider, known, 'RELEASE', 'again')).status, 'PAID_OUT');
  });

  test('and lost blocks the release; the money can be returned', async (t) => {
    const { standIn, provider, known, payIn } = await held(t);
    standIn.endDispute(standIn.dispute(payIn.Id, { DisputeType: 'NOT_CONTESTABLE' }).Id, 'LOST');
    const refused = await instruct(provider, known, 'RELEASE');
    assert.match(refused.declined?.words ?? '', /^The buyer's bank took back a payment/);
    assert.equal((await instruct(provider, known, 'REFUND')).status, 'RETURNED');
  });

  for (const [what, more] of [
    ['a question that was answered', { DisputeType: 'RETRIEVAL', ResultCode: 'LOST' }],
    ['one that was withdrawn', { ResultCode: 'VOID' }],
    ['one that was over before the hold', { ResultCode: 'LOST', ClosedDate: 1 }],
  ] as const) {
    test(`${what} does not matter`, async (t) => {
      const { standIn, provider, known, payIn } = await held(t);
      standIn.dispute(payIn.Id, { Status: 'CLOSED', ClosedDate: payIn.CreationDate + 9, ...more });
      assert.equal((await instruct(provider, known, 'RELEASE')).status, 'PAID_OUT');
    });
  }

  test('blocks an earlier request for the release that arrives later', async (t) => {
    const { standIn, provider, known, payIn, seller, balance, found } = await held(t);
    const { wait, there, letThrough } = heldUp(t);
    standIn.failNext(/^POST \/transfers$/, { onTheWay: wait });
    const earlier = instruct(provider, known, 'RELEASE');
    await there;
    standIn.dispute(payIn.Id);
    assert.equal((await instruct(provider, known, 'RELEASE')).declined?.code, 'disputed');
    letThrough();
    assert.equal((await earlier).status, 'HELD');
    assert.equal(balance(seller.wallet), 0);
    assert.deepEqual(await found(), ['HELD', BigInt(amount)]);
  });

  test('blocks the release if Mangopay does not respond about it', async (t) => {
    const { standIn, provider, known, seller, balance } = await held(t);
    standIn.failNext(/\/disputes$/, { status: 503 });
    await assert.rejects(instruct(provider, known, 'RELEASE'), { kind: 'FAILED' });
    assert.equal(balance(seller.wallet), 0);
  });
});

describe('a pay-in that is disputed after the release', () => {
  for (const [what, ends, status, left] of [
    [
      'is lost for a part',
      { ResultCode: 'LOST', DisputedFunds: money(50_000) },
      'PARTLY_RETURNED',
      amount - 50_000,
    ],
    [
      'is won for what was contested',
      { ResultCode: 'WON', DisputedFunds: money(amount), ContestedFunds: money(amount - 50_000) },
      'PARTLY_RETURNED',
      amount - 50_000,
    ],
    ['is withdrawn', { ResultCode: 'VOID' }, 'PAID_OUT', amount],
  ] as const) {
    test(`${what}: ${status}`, async (t) => {
      const { standIn, provider, asked, known, payIn, found } = await held(t);
      await instruct(provider, known, 'RELEASE');
      const closed = { Status: 'CLOSED', ClosedDate: payIn.CreationDate + 9 } as const;
      standIn.dispute(payIn.Id, { ...closed, ...ends });
      assert.deepEqual(await found(), [status, BigInt(left)]);
      assert.deepEqual(await found(asked), [status, BigInt(left)]);
    });
  }

  test('counts together with what the seller paid back', async (t) => {
    const { standIn, provider, known, payIn, found } = await held(t);
    await instruct(provider, known, 'RELEASE');
    standIn.refundOutside(standIn.transfers.at(-1)?.Id ?? assert.fail(), 100_000);
    const lost = { Status: 'CLOSED', ResultCode: 'LOST', DisputedFunds: money(50_000) } as const;
    standIn.dispute(payIn.Id, { ...lost, ClosedDate: payIn.CreationDate + 9 });
    assert.deepEqual(await found(), ['PARTLY_RETURNED', BigInt(amount - 150_000)]);
  });

  test('does not concern an order that was held before that pay-in', async (t) => {
    const { standIn, provider, known, buyers, found } = await held(t);
    await instruct(provider, known, 'RELEASE');
    const later = standIn.payIn(buyers.rich.wallet, amount);
    later.CreationDate = holdIn(standIn, known).CreationDate + 1;
    standIn.dispute(later.Id);
    assert.deepEqual(await found(), ['PAID_OUT', BigInt(amount)]);
  });
});

test('the hooks of a dispute lead to the orders of its buyer since the pay-in', async (t) => {
  const { standIn, provider, payIn, buyers } = await held(t);
  const { Id } = standIn.dispute(payIn.Id);
  const { signal } = new AbortController();
  for (const eventType of ['DISPUTE_CREATED', 'DISPUTE_CLOSED']) {
    const { about } = provider.readNotification(hook(standIn.hookSecret, eventType, Id, 1_800_000_000));
    assert.deepEqual(about, { resource: `/disputes/${Id}` });
  }
  assert.deepEqual(await provider.subjectOf?.(`/disputes/${Id}`, signal), {
    buyer: { wallet: buyers.rich.wallet },
    openedSinceMs: (payIn.CreationDate - 3_600) * 1_000,
  });
  assert.equal(await provider.subjectOf?.('/disputes/dispute_gone', signal), undefined);
  const document = hook(standIn.hookSecret, 'DISPUTE_DOCUMENT_CREATED', 'doc_1', 1_800_000_000);
  assert.equal(provider.readNotification(document).about, undefined);
});
