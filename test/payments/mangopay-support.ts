import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { createMangopayProvider } from '../../src/payments/mangopay/provider.ts';
import type { PaymentOrder, SentNotification } from '../../src/payments/provider.ts';
import { type MangopayStandIn, startMangopayStandIn } from '../support/mangopay-stand-in.ts';
import { instruct, paymentOrder } from './provider-suite.ts';

/** The amount of an order. */
export const amount = 1_250_000;

type Buyer = 'rich' | 'poor' | 'owner';

/** Starts a stand-in of Mangopay and a provider that uses it. */
export async function opened(t: TestContext, now: () => number = Date.now) {
  const standIn = await startMangopayStandIn(t);
  const provider = createMangopayProvider(standIn, now);
  t.after(() => provider.close());
  const buyers = {
    rich: standIn.party('PAYER', 'EUR', 100 * amount),
    poor: standIn.party('PAYER', 'EUR', amount - 1),
    owner: standIn.party('OWNER', 'EUR', 100 * amount),
  };
  const seller = standIn.party('OWNER', 'EUR', 0);
  const order = (buyer: Buyer = 'rich', more: Partial<PaymentOrder> = {}) =>
    paymentOrder({ buyer: buyers[buyer], seller, amount: BigInt(amount), currency: 'EUR', ...more });
  const balance = (wallet: string | undefined) =>
    standIn.wallets.find(({ Id }) => Id === wallet)?.Balance.Amount ?? assert.fail();
  return { standIn, provider, order, buyers, seller, balance };
}

/** The same with an order that is held, known by its reference or not, its wallet, and the pay-in that its buyer made. */
export async function held(t: TestContext) {
  const open = await opened(t);
  const { standIn, provider, buyers } = open;
  const asked = open.order();
  const frozen = await instruct(provider, asked, 'FREEZE');
  const wallet = holdIn(standIn, asked).CreditedWalletId ?? assert.fail();
  const payIn =
    standIn.payIns.find(({ CreditedWalletId }) => CreditedWalletId === buyers.rich.wallet) ?? assert.fail();
  const reference = frozen.reference ?? '';
  return { ...open, asked, known: { ...asked, reference }, frozen, reference, wallet, payIn };
}

/** The transfer that holds the amount of an order. */
export const holdIn = ({ transfers }: MangopayStandIn, { holdId, buyer }: PaymentOrder) =>
  transfers.find(({ Tag, DebitedWalletId }) => Tag === holdId && DebitedWalletId === buyer?.wallet) ??
  assert.fail();

/** A hook of Mangopay. */
export function hook(secret: string, eventType: string, resourceId: string, dateS: number): SentNotification {
  const query = `secret=${secret}&EventType=${eventType}&RessourceId=${resourceId}&Date=${dateS}`;
  return { query, headers: {}, body: new Uint8Array(), nowS: dateS };
}
