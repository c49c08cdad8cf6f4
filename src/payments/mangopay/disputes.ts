import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import { type NotificationSubject, type PaymentOrder, ProviderFailure } from '../provider.ts';
import { declinedFor, type MangopayApi } from './client.ts';
import { holdOf, type Money, type OrderLedger, snapshotOf, type Transfer } from './snapshot.ts';

/** The members of a dispute (a chargeback of a pay-in) that are read. */
export interface Dispute {
  readonly Id: string;
  /** The pay-in. */
  readonly InitialTransactionId: string;
  readonly DisputeType: 'CONTESTABLE' | 'NOT_CONTESTABLE' | 'RETRIEVAL';
  readonly DisputedFunds: Money;
  /** The part that the platform contests. */
  readonly ContestedFunds?: Money | null;
  readonly Status: string;
  /** Member of a CLOSED dispute. */
  readonly ResultCode?: string | null;
  /** Unix seconds. */
  readonly ClosedDate?: number | null;
}

/** The members of a pay-in that are read. */
interface PayIn {
  readonly CreationDate: number;
  /** Unix seconds; null until it succeeds. */
  readonly ExecutionDate?: number | null;
  readonly CreditedWalletId: string;
}

/** Disputes of a wallet that are read: Mangopay's largest page. If there are more, the look-up fails. */
const disputesMax = 100;
/** How long before its hold an order may have been opened, in milliseconds. */
const openingMs = 3_600_000;

const isOpen = ({ Status, ResultCode }: Dispute): boolean =>
  Status !== 'CLOSED' || !['LOST', 'WON', 'VOID'].includes(ResultCode ?? '');

/** Returns what a closed dispute took from the platform, in minor units. A retrieval is an inquiry and takes nothing. */
function lostBy({ DisputeType, ResultCode, DisputedFunds, ContestedFunds }: Dispute): bigint {
  if (DisputeType === 'RETRIEVAL' || ResultCode === 'VOID') return 0n;
  const disputed = BigInt(DisputedFunds.Amount);
  return ResultCode === 'WON' ? disputed - BigInt(ContestedFunds?.Amount ?? disputed) : disputed;
}

/**
 * Returns the disputes that may be about the money of a hold. A dispute names its pay-in, but a wallet does not say which pay-in
 * paid for what. So each pay-in before the hold counts, unless its dispute was over by then.
 */
async function disputesOf(api: MangopayApi, hold: Transfer): Promise<readonly Dispute[]> {
  const path = `/wallets/${hold.DebitedWalletId}/disputes`;
  const found = await api.get<readonly Dispute[]>(path, { per_page: `${disputesMax}` });
  if (found.length === disputesMax) throw new ProviderFailure('FAILED', `Mangopay: ${path} has too many`);
  const wasOver = ({ Status, ClosedDate }: Dispute) =>
    Status === 'CLOSED' && (ClosedDate ?? hold.CreationDate) < hold.CreationDate;
  const kept = await Promise.all(
    found
      .filter((dispute) => !wasOver(dispute))
      .map(async (dispute) => {
        const payIn = await api.find<PayIn>(`/payins/${dispute.InitialTransactionId}`);
        const paidAtS = payIn === undefined ? 0 : (payIn.ExecutionDate ?? payIn.CreationDate);
        return paidAtS <= hold.CreationDate ? dispute : undefined;
      }),
  );
  return kept.filter((dispute) => dispute !== undefined);
}

/** Returns why an order cannot be released now: a pay-in that may have paid for it is in dispute, or was lost in one. */
export async function whyDisputed(api: MangopayApi, ledger: OrderLedger): Promise<Declined | undefined> {
  const hold = holdOf(ledger);
  const disputes = hold === undefined ? [] : await disputesOf(api, hold);
  const against = disputes.find(isOpen) ?? disputes.find((dispute) => lostBy(dispute) > 0n);
  if (against === undefined) return undefined;
  const { Id, InitialTransactionId, Status, ResultCode } = against;
  const state = isOpen(against) ? Status : `${Status} ${ResultCode}`;
  const words = isOpen(against)
    ? 'The buyer contests a payment that this order may have been paid with: nothing is released until that is decided.'
    : "The buyer's bank took back a payment that this order may have been paid with: nothing is released.";
  return declinedFor('disputed', `dispute ${Id} of pay-in ${InitialTransactionId} is ${state}`, words);
}

/** Returns where the money of an order is, with disputes after its release. */
export async function paymentOf(
  api: MangopayApi,
  ledger: OrderLedger,
  order: PaymentOrder,
): Promise<PaymentSnapshot> {
  const payment = snapshotOf(ledger, order);
  const { status, amount: kept = 0n, currency, reference } = payment;
  const hold = holdOf(ledger);
  if (hold === undefined || (status !== 'PAID_OUT' && status !== 'PARTLY_RETURNED')) return payment;
  const disputes = await disputesOf(api, hold);
  const facts = { currency, reference };
  const held = BigInt(hold.CreditedFunds.Amount);
  if (disputes.some(isOpen)) return { status: 'DISPUTED', amount: held, ...facts };
  const lost = disputes.reduce((sum, dispute) => sum + lostBy(dispute), 0n);
  if (lost === 0n) return payment;
  if (lost >= held) return { status: 'RETURNED', amount: held, ...facts };
  return { status: 'PARTLY_RETURNED', amount: kept > lost ? kept - lost : 0n, ...facts };
}

/** Returns the orders that a dispute may be about: those of the wallet of its pay-in, held since then. */
export async function ordersOfDispute(
  api: MangopayApi,
  disputeId: string,
): Promise<NotificationSubject | undefined> {
  const dispute = await api.find<Dispute>(`/disputes/${disputeId}`);
  if (dispute === undefined) return undefined;
  const payIn = await api.find<PayIn>(`/payins/${dispute.InitialTransactionId}`);
  if (payIn === undefined) return undefined;
  const { ExecutionDate, CreationDate, CreditedWalletId: wallet } = payIn;
  return { buyer: { wallet }, openedSinceMs: (ExecutionDate ?? CreationDate) * 1_000 - openingMs };
}
