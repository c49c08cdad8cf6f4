import { isPage } from '../../domain/address.ts';
import type { Declined, PaymentSnapshot } from '../../domain/payment.ts';
import { InstitutionFailure } from '../institution.ts';
import { declinedFor } from './client.ts';

/** A sum as Mangopay writes it. */
export interface Money {
  readonly Currency: string;
  /** Minor units. */
  readonly Amount: number;
}

/** A transfer, or the refund of one: what of it is looked at. */
export interface Transfer {
  readonly Id: string;
  /** Unix seconds. */
  readonly CreationDate: number;
  readonly Tag?: string | null;
  readonly AuthorId: string;
  readonly DebitedFunds: Money;
  readonly Status: 'CREATED' | 'SUCCEEDED' | 'FAILED';
  readonly Nature: 'REGULAR' | 'REFUND' | 'REPUDIATION' | 'SETTLEMENT';
  readonly DebitedWalletId: string;
  readonly CreditedWalletId: string;
  readonly ResultCode?: string | null;
  readonly ResultMessage?: string | null;
  readonly PendingUserAction?: { readonly RedirectUrl?: string | null } | null;
}

/** The wallet of an order, and the transfers from and to it. */
export interface OrderLedger {
  readonly walletId: string;
  /** Whether it was closed: no money is to come into it any more. */
  readonly isClosed: boolean;
  readonly transfers: readonly Transfer[];
}

/** The transfer that an order is held by, or was to be: the first from the buyer's wallet into that of the order. */
export function holdOf({ walletId, transfers }: OrderLedger): Transfer | undefined {
  const into = transfers.filter(
    ({ Nature, CreditedWalletId }) => Nature === 'REGULAR' && CreditedWalletId === walletId,
  );
  return into.find(({ Status }) => Status !== 'FAILED') ?? into[0];
}

/**
 * Where the money of an order is, by what went into its wallet and out of it. Throws InstitutionFailure where that is
 * still being decided.
 *
 * After a release, money that Mangopay was told to take back from the seller is in the order's wallet first, and with the
 * buyer only when the hold was refunded as well: RETURNED is said of the second alone.
 */
export function snapshotOf(ledger: OrderLedger): PaymentSnapshot {
  const hold = holdOf(ledger);
  if (hold === undefined) return { status: ledger.isClosed ? 'VOID' : 'ABSENT' };
  const told = { currency: hold.DebitedFunds.Currency, reference: hold.Id };
  if (hold.Status === 'FAILED') return { status: 'VOID', reference: hold.Id, declined: declinedBy(hold) };
  if (hold.Status === 'CREATED') return awaiting(hold);
  const { walletId, transfers } = ledger;
  const sum = (belongs: (transfer: Transfer) => boolean) =>
    transfers
      .filter((transfer) => transfer.Status === 'SUCCEEDED' && belongs(transfer))
      .reduce((total, { DebitedFunds }) => total + BigInt(DebitedFunds.Amount), 0n);
  const isOut = ({ DebitedWalletId }: Transfer) => DebitedWalletId === walletId;
  const isToBuyer = ({ CreditedWalletId }: Transfer) => CreditedWalletId === hold.DebitedWalletId;
  const isRefund = ({ Nature }: Transfer) => Nature === 'REFUND';
  const received = sum((transfer) => !isOut(transfer) && !isRefund(transfer));
  const returned = sum((transfer) => isOut(transfer) && isToBuyer(transfer));
  const paid = sum((transfer) => isOut(transfer) && !isToBuyer(transfer));
  const takenBack = sum((transfer) => !isOut(transfer) && isRefund(transfer));
  if (returned >= received) return { status: 'RETURNED', amount: received, ...told };
  if (paid === 0n) return { status: 'HELD', amount: received - returned, ...told };
  if (takenBack === 0n) return { status: 'PAID_OUT', amount: paid, ...told };
  return { status: 'PARTLY_RETURNED', amount: paid - takenBack, ...told };
}

/** How long a transfer waits for its buyer before it fails, in milliseconds. */
const authenticationMs = 600_000;

function awaiting({ Id, CreationDate, PendingUserAction }: Transfer): PaymentSnapshot {
  const nextActionUrl = PendingUserAction?.RedirectUrl;
  if (!isPage(nextActionUrl)) {
    const why = nextActionUrl ? 'waits for the buyer at what is no page' : 'is still being processed';
    throw new InstitutionFailure('FAILED', `Mangopay: transfer ${Id} ${why}`);
  }
  const nextActionExpiresAtMs = CreationDate * 1_000 + authenticationMs;
  return { status: 'AWAITING_BUYER', reference: Id, nextActionUrl, nextActionExpiresAtMs };
}

/** What the buyer is told, by Mangopay's result code, where it is a matter of theirs. */
const words: Readonly<Record<string, string>> = {
  '001001': 'The wallet does not hold enough money for this order.',
  '007101': 'The payment was not confirmed: authentication failed too often.',
  '007102': 'The payment was not confirmed within ten minutes.',
};

/** Why a transfer failed. */
export function declinedBy({ Id, ResultCode, ResultMessage }: Transfer): Declined {
  const code = ResultCode ?? 'unknown';
  return declinedFor(code, `${Id}, ${code}: ${ResultMessage ?? ''}`, words[code]);
}
