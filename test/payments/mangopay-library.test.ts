import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TestContext, test } from 'node:test';
import Mangopay from 'mangopay4-nodejs-sdk';
import { createMangopayProvider } from '../../src/payments/mangopay/provider.ts';
import { type MangopayStandIn, startMangopayStandIn } from '../support/mangopay-stand-in.ts';
import type { PartyOfStandIn, SeenRequest } from '../support/mangopay-world.ts';
import { instruct, lookUp, paymentOrder } from './provider-suite.ts';

/** Sends the requests of this project with Mangopay's own library. */
async function askAll(standIn: MangopayStandIn, buyer: PartyOfStandIn) {
  const { clientId, apiKey, url, escrowUser } = standIn;
  const library = new Mangopay({ clientId, clientApiKey: apiKey, baseUrl: url, errorHandler: () => {} });
  const underKey = (key: string) => ({ headers: { 'Idempotency-Key': key } });
  const money = (Amount: number) => ({ Currency: 'EUR', Amount }) as const;
  const key = randomUUID();
  const wallet = await library.Wallets.create(
    { Owners: [escrowUser], Description: 'of an order', Currency: 'EUR', Tag: 'hold' },
    underKey(randomUUID()),
  );
  const transfer = await library.Transfers.create(
    {
      ...{ AuthorId: buyer.user, DebitedWalletId: buyer.wallet, CreditedWalletId: wallet.Id },
      ...{ DebitedFunds: money(100), Fees: money(0), Tag: 'hold', ScaContext: 'USER_PRESENT' },
    },
    underKey(key),
  );
  const refund = await library.Transfers.createRefund(
    transfer.Id,
    { AuthorId: buyer.user, DebitedFunds: money(40), Fees: money(0), Tag: 'hold' },
    underKey(randomUUID()),
  );
  const closed = new library.models.Wallet({ Tag: 'hold closed', Description: 'of an order' });
  await library.Wallets.update(Object.assign(closed, { Id: wallet.Id }));
  const payIn = standIn.payIns.find(({ CreditedWalletId }) => CreditedWalletId === buyer.wallet);
  const { Id: disputeId } = standIn.dispute(payIn?.Id ?? assert.fail(), {
    CreationDate: 1,
    ClosedDate: 2,
    Status: 'CLOSED',
  });
  const sorted = { parameters: { page: 1, per_page: 100, Sort: 'CreationDate:DESC' } };
  await library.Idempotency.get(key);
  await library.Transfers.get(transfer.Id);
  await library.Wallets.get(wallet.Id);
  await library.Wallets.getTransactions(wallet.Id, sorted);
  await library.Users.getWallets(escrowUser, sorted);
  await library.Refunds.get(refund.Id);
  await library.Users.get(escrowUser);
  await library.Disputes.get(disputeId);
  await library.Disputes.getDisputesForWallet(buyer.wallet, { parameters: { per_page: 100 } });
  await library.PayIns.get(payIn?.Id ?? assert.fail());
}

/** Has the provider send each of its requests. */
async function liveThrough(t: TestContext, standIn: MangopayStandIn, buyer: PartyOfStandIn) {
  const provider = createMangopayProvider(standIn, Date.now);
  t.after(() => provider.close());
  const seller = standIn.party('OWNER', 'EUR', 0);
  const order = () => paymentOrder({ buyer, seller, amount: 100n, currency: 'EUR' });
  const [sold, returned, cancelled] = [order(), order(), order()];
  const { signal } = new AbortController();
  await provider.checkAccess(signal);
  const { reference } = await instruct(provider, sold, 'FREEZE');
  await instruct(provider, { ...sold, reference }, 'FREEZE');
  await instruct(provider, { ...sold, reference }, 'RELEASE');
  await instruct(provider, returned, 'FREEZE');
  await instruct(provider, returned, 'REFUND');
  await instruct(provider, cancelled, 'CANCEL');
  await lookUp(provider, sold);
  const refund = standIn.transfers.find(({ Nature }) => Nature === 'REFUND');
  await provider.subjectOf?.(`/refunds/${refund?.Id}`, signal);
  await provider.subjectOf?.(`/disputes/${standIn.disputes[0]?.Id}`, signal);
}

/** A request without its ids, its key and the order of its members, which differ between any two. */
function shapeOf({ method, path, query, body, idempotencyKey, headers }: SeenRequest) {
  const ids = path.replaceAll(/\/(?:[a-z]+_[\w-]+|[0-9a-f-]{32,36})(?=\/|$)/g, '/ID');
  return {
    line: `${method} ${ids}`,
    members: Object.keys(body).sort().join(),
    query: [...query.keys()].sort().join(),
    hasKey: idempotencyKey !== undefined,
    type: method === 'GET' ? '' : headers['content-type'],
  };
}

test("requests have the form of those that Mangopay's own library sends", async (t) => {
  const standIn = await startMangopayStandIn(t);
  const buyer = standIn.party('PAYER', 'EUR', 1_000);
  await askAll(standIn, buyer);
  const theirs = new Map(standIn.requests.map(shapeOf).map((shape) => [shape.line, shape]));
  const before = standIn.requests.length;
  await liveThrough(t, standIn, buyer);
  const ours = standIn.requests.slice(before).map(shapeOf);
  assert.ok(ours.length > 20);
  for (const { line, ...shape } of ours) {
    const known = theirs.get(line);
    assert.ok(known, line);
    assert.equal(shape.hasKey, known.hasKey, line);
    assert.equal(shape.type, known.type, line);
    const isSubset = (some: string, all: string) =>
      some.split(',').every((name) => name === '' || all.split(',').includes(name));
    assert.ok(isSubset(shape.members, known.members), `${line}: ${shape.members}`);
    assert.ok(isSubset(shape.query, known.query), `${line}: ${shape.query}`);
  }
});
