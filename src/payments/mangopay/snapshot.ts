import { isPage } from '../../domain/address.ts';
import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import { type PaymentOrder, ProviderFailure } from '../provider.ts';
import { declinedFor } from './client.ts';

/** An amount at Mangopay. */
export interface Money {
  readonly Currency: string;
  /** Minor units. */
  readonly Amount: number;
}

/** The members of a wallet's transaction (transfer, payout or refund) that are read. */
export interface Transfer {
  readonly Id: string;
  /** Unix seconds. */
  readonly CreationDate: number;
  readonly Tag?: string | null;
  readonly AuthorId: string;
  /** What leaves the debited wallet. */
  readonly DebitedFunds: Money;
  /** What arrives: the debited amount without fees. */
  readonly CreditedFunds: Money;
  readonly Status: 'CREATED' | 'SUCCEEDED' | 'FAILED';
  readonly Type: 'PAYIN' | 'TRANSFER' | 'CONVERSION' | 'PAYOUT';
  readonly Nature: 'REGULAR' | 'REFUND' | 'REPUDIATION' | 'SETTLEMENT';
  /** Null of a pay-in. */
  readonly DebitedWalletId: string | null;
  /** Null of a payout. */
  readonly CreditedWalletId: string | null;
  /** The transfer that a refund is of; lists lack it. */
  readonly InitialTransactionId?: string;
  readonly ResultCode?: string | null;
  readonly ResultMessage?: string | null;
  readonly PendingUserAction?: { readonly RedirectUrl?: string | null } | null;
}

/** The wallet of an order and its transactions. Refunds into it name their transfers. */
export interface OrderLedger {
  readonly walletId: string;
  /** Whether it was closed: no more money may come in. */
  readonly isClosed: boolean;
  readonly transfers: readonly Transfer[];
}

/** Returns the transfer that holds the money of an order, or failed to: the first one into the order's wallet. */
export function holdOf({ walletId, transfers }: OrderLedger): Transfer | undefined {
  const into = transfers.filter(
    ({ Type, Nature, CreditedWalletId }) =>
      Type === 'TRANSFER' && Nature === 'REGULAR' && CreditedWalletId === walletId,
  );
  return into.find(({ Status }) => Status !== 'FAILED') ?? into[0];
}

/** The members of an order that decide where its money is. */
type OrderTerms = Pick<PaymentOrder, 'holdId' | 'amount' | 'seller'>;

/**
 * Returns where the money of an order is, by the transactions of its wallet. Throws ProviderFailure while that is undecided.
 *
 * A release is a transfer to the seller's wallet with the order's tag. Money that leaves the wallet in another way, except to
 * the buyer, makes the HELD amount smaller than agreed, so the order needs review; `declined` says what was found. Staff can
 * copy the tag, without effect: an order becomes RELEASED only while a RELEASE is open.
 *
 * After a release, money that Mangopay takes back from the seller is first in the order's wallet. The buyer has it only after
 * the hold was refunded too; only then the status is RETURNED.
 */
export function snapshotOf(ledger: OrderLedger, order: OrderTerms): PaymentSnapshot {
  const hold = holdOf(ledger);
  if (hold === undefined) return { status: ledger.isClosed ? 'VOID' : 'ABSENT' };
  if (hold.Status === 'FAILED') return { status: 'VOID', reference: hold.Id, declined: declinedBy(hold) };
  if (hold.Status === 'CREATED') return awaiting(hold);
  return heldSnapshot(hold, ledger, order);
}

function heldSnapshot(
  hold: Transfer,
  { walletId, transfers }: OrderLedger,
  order: OrderTerms,
): PaymentSnapshot {
  const sellerWallet = order.seller?.wallet;
  const facts = { currency: hold.DebitedFunds.Currency, reference: hold.Id };
  const moved = transfers.filter(hasMoved);
  const into = moved.filter(({ CreditedWalletId }) => CreditedWalletId === walletId);
  const out = moved.filter(({ DebitedWalletId }) => DebitedWalletId === walletId);
  const isToBuyer = ({ CreditedWalletId }: Transfer) => CreditedWalletId === hold.DebitedWalletId;
  const isRelease = ({ CreditedWalletId, Tag }: Transfer) =>
    CreditedWalletId === sellerWallet && Tag === order.holdId;
  const backOf = (initial: Transfer) =>
    credited(into.filter(({ InitialTransactionId }) => InitialTransactionId === initial.Id));
  const released = out.filter(isRelease);
  const spent = debited(out);
  const received = credited(into.filter(({ Nature }) => Nature !== 'REFUND'));
  const left = credited(into) - spent;
  const returned = credited(out.filter(isToBuyer));
  const paid = credited(released);
  const takenBack = released.reduce((sum, transfer) => sum + backOf(transfer), 0n);
  const isAllBack = returned >= received || returned >= order.amount;
  if (returned > 0n && left <= 0n && paid === takenBack && isAllBack) {
    return { status: 'RETURNED', amount: received, ...facts };
  }
  const isOver = spent >= credited([hold]);
  if (paid > 0n && isOver && takenBack > 0n)
    return { status: 'PARTLY_RETURNED', amount: paid - takenBack, ...facts };
  if (paid > 0n && isOver) return { status: 'PAID_OUT', amount: paid, ...facts };
  const strange = out.filter((one) => !isToBuyer(one) && backOf(one) < credited([one]));
  const declined = strange.length > 0 ? movedElsewhere(strange, sellerWallet, isRelease) : undefined;
  return { status: 'HELD', amount: left, ...facts, ...(declined && { declined }) };
}

/** Whether money has moved. A payout takes it when it is created. */
const hasMoved = ({ Status, Type }: Transfer): boolean =>
  Status === 'SUCCEEDED' || (Status === 'CREATED' && Type === 'PAYOUT');

const debited = (some: readonly Transfer[]): bigint =>
  some.reduce((sum, { DebitedFunds }) => sum + BigInt(DebitedFunds.Amount), 0n);
const credited = (some: readonly Transfer[]): bigint =>
  some.reduce((sum, { CreditedFunds }) => sum + BigInt(CreditedFunds.Amount), 0n);

/** Describes for the review what took money out of the order's wallet without being its release. */
function movedElsewhere(
  strange: readonly Transfer[],
  sellerWallet: string | undefined,
  isRelease: (transfer: Transfer) => boolean,
): Declined {
  const whereTo = (transfer: Transfer) => {
    const { CreditedWalletId: to } = transfer;
    if (to === null) return 'to a bank account';
    if (to !== sellerWallet) return `to wallet ${to}, which is not the seller's`;
    const why = isRelease(transfer) ? 'a part of what is held' : 'without the tag of the order';
    return `to the seller's wallet ${to}, ${why}`;
  };
  const found = strange.map((transfer) => {
    const { Id, Type, DebitedFunds } = transfer;
    const { Amount, Currency } = DebitedFunds;
    return `${Type.toLowerCase()} ${Id} took ${Amount} ${Currency} ${whereTo(transfer)}`;
  });
  return declinedFor(
    'moved_elsewhere',
    `${found.join('; ')}.`,
    'Money of this order left its wallet by other means than this service.',
  );
}

/** How long a transfer waits for its buyer before it fails, in milliseconds. */
const authenticationMs = 600_000;

function awaiting({ Id, CreationDate, PendingUserAction }: Transfer): PaymentSnapshot {
  const nextActionUrl = PendingUserAction?.RedirectUrl;
  if (!isPage(nextActionUrl)) {
    const why = nextActionUrl ? 'waits for the buyer at what is no page' : 'is still being processed';
    throw new ProviderFailure('FAILED', `Mangopay: transfer ${Id} ${why}`);
  }
  const nextActionExpiresAtMs = CreationDate * 1_000 + authenticationMs;
  return { status: 'AWAITING_BUYER', reference: Id, nextActionUrl, nextActionExpiresAtMs };
}

/** Words for the buyer, by Mangopay's result code. */
const words: Readonly<Record<string, string>> = {
  '001001': 'The wallet does not hold enough money for this order.',
  '007101': 'The payment was not confirmed: authentication failed too often.',
  '007102': 'The payment was not confirmed within ten minutes.',
};

/** Returns why a transfer failed. */
export function declinedBy({ Id, ResultCode, ResultMessage }: Transfer): Declined {
  const code = ResultCode ?? 'unknown';
  return declinedFor(code, `${Id}, ${code}: ${ResultMessage ?? ''}`, words[code]);
}
