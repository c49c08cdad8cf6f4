import { createHash } from 'node:crypto';
import { type Declined, unexplainedWords } from '../../domain/payment.ts';
import { type PaymentOrder, ProviderFailure } from '../provider.ts';
import type { MangopayApi } from './client.ts';
import type { OrderLedger, Transfer } from './snapshot.ts';

/** A call about an order at Mangopay. */
export interface OrderCall<Order = PaymentOrder> {
  readonly api: MangopayApi;
  readonly order: Order;
  /** The user who owns the wallets of orders. An order has at most one. */
  readonly escrowUser: string;
  readonly nowMs: () => number;
}

/** The members of a wallet that are read. */
interface Wallet {
  readonly Id: string;
  readonly Tag?: string | null;
  readonly CreationDate: number;
}

/**
 * Age of an order, in milliseconds, from which its wallet is searched before one is created. Mangopay keeps idempotency keys
 * for 24 hours; the rest is for a request that is slow to arrive.
 */
const keyTrustedMs = 12 * 60 * 60 * 1000;
/** How far Mangopay's clock may lag ours, in seconds: a search ends that much before the order. */
const clockDifferenceS = 600;
/** Wallets that a search reads before it fails, and Mangopay's largest page. */
const listLimits = { wallets: 5_000, perPage: 100 } as const;

/** Derives an idempotency key of 32 characters; Mangopay accepts 16 to 36. */
export function keyOf(thing: string, id: string): string {
  return createHash('sha256').update(`${thing} ${id}`).digest('hex').slice(0, 32);
}

/** An error at Mangopay used up the key, and there is no wallet: one under another key could be a second one. */
const noWallet: Declined = {
  code: 'no_wallet',
  words: unexplainedWords,
  detail: 'Mangopay failed to make the wallet of the order, and its key is used up',
};

/** The end of the Tag of a closed wallet. */
const closed = ' closed';
const closedTag = ({ holdId }: PaymentOrder) => `${holdId}${closed}`;

/** Finds the wallet of an order, by its reference or else among the wallets of the escrow user. */
export async function findLedger(call: OrderCall): Promise<OrderLedger | undefined> {
  const { api, order } = call;
  if (order.reference === undefined) {
    const wallet = await search(call);
    return wallet && read(api, wallet);
  }
  const hold = await api.get<Transfer>(`/transfers/${order.reference}`);
  const { Id, CreditedWalletId: walletId } = hold;
  if (walletId === null) throw new ProviderFailure('FAILED', `Mangopay: ${Id} has no wallet`);
  return readAgain(api, { walletId, isClosed: false }, hold);
}

/** Finds or creates the wallet of an order. Returns why Mangopay creates none. */
export async function openLedger(call: OrderCall): Promise<OrderLedger | { readonly declined: Declined }> {
  const { api, order, escrowUser, nowMs } = call;
  const isOld = nowMs() - order.openedAtMs > keyTrustedMs;
  const found = isOld ? await search(call) : undefined;
  if (found !== undefined) return read(api, found);
  const body = {
    Owners: [escrowUser],
    Description: `Artseal ${order.escrowId}`,
    Currency: order.currency,
    Tag: order.holdId,
  };
  const made = await api.post<Wallet>('/wallets', body, keyOf('wallet', order.holdId));
  if (made.kind === 'REJECTED') return { declined: made.declined };
  if (made.kind === 'DONE' && !made.isStored) {
    return { walletId: made.resource.Id, isClosed: false, transfers: [] };
  }
  if (made.kind === 'DONE') return read(api, await api.get<Wallet>(`/wallets/${made.resource.Id}`));
  const despite = await search(call);
  return despite === undefined ? { declined: noWallet } : read(api, despite);
}

/** Marks the wallet of an order at Mangopay: no more money may come in. */
export function closeWallet({ api, order }: OrderCall, walletId: string): Promise<void> {
  return api.put(`/wallets/${walletId}`, { Tag: closedTag(order) });
}

async function search({ api, order, escrowUser }: OrderCall): Promise<Wallet | undefined> {
  const sinceS = Math.floor(order.openedAtMs / 1000) - clockDifferenceS;
  const { wallets, perPage } = listLimits;
  for (let page = 1; page <= wallets / perPage; page += 1) {
    const query = { page: `${page}`, per_page: `${perPage}`, Sort: 'CreationDate:DESC' };
    const found = await api.get<readonly Wallet[]>(`/users/${escrowUser}/wallets`, query);
    // The search ends by the order of the list: in another order it could miss a wallet.
    const isNewer = ({ CreationDate }: Wallet, place: number) =>
      CreationDate > (found[place - 1]?.CreationDate ?? CreationDate);
    if (found.some(isNewer)) {
      throw new ProviderFailure(
        'FAILED',
        'Mangopay: its list of wallets is not in the order that was asked for',
      );
    }
    const own = found.find(({ Tag }) => Tag === order.holdId || Tag === closedTag(order));
    const isPast = found.some(({ CreationDate }) => CreationDate < sinceS);
    if (own !== undefined || isPast || found.length < perPage) return own;
  }
  throw new ProviderFailure('FAILED', `Mangopay: more than ${wallets} wallets since the order`);
}

function read(api: MangopayApi, { Id, Tag }: Wallet): Promise<OrderLedger> {
  return readAgain(api, { walletId: Id, isClosed: Tag?.endsWith(closed) ?? false });
}

/** Reads the transactions of a wallet. Adds one that a response had, since the list may not have it yet. */
export async function readAgain(
  api: MangopayApi,
  { walletId, isClosed }: Pick<OrderLedger, 'walletId' | 'isClosed'>,
  answered?: Transfer,
): Promise<OrderLedger> {
  const query = { per_page: `${listLimits.perPage}`, Sort: 'CreationDate:ASC' };
  const found = await api.get<readonly Transfer[]>(`/wallets/${walletId}/transactions`, query);
  if (found.length === listLimits.perPage) {
    throw new ProviderFailure('FAILED', `Mangopay: wallet ${walletId} has too many transactions`);
  }
  const others = found.filter(({ Id }) => Id !== answered?.Id);
  const transfers = answered === undefined ? others : [...others, answered];
  return {
    walletId,
    isClosed,
    transfers: await Promise.all(transfers.map((transfer) => current(api, transfer, walletId))),
  };
}

/**
 * Reads a transaction in full if its list entry is not enough: lists lack the page for the buyer and the transfer that a refund
 * is of, and a waiting transfer may have changed.
 */
function current(api: MangopayApi, transfer: Transfer, walletId: string): Promise<Transfer> | Transfer {
  const { Id, Type, Nature, Status, CreditedWalletId } = transfer;
  if (Nature === 'REFUND' && CreditedWalletId === walletId) return api.get<Transfer>(`/refunds/${Id}`);
  const isWaiting = Status === 'CREATED' && Type === 'TRANSFER' && Nature === 'REGULAR';
  return isWaiting ? api.get<Transfer>(`/transfers/${Id}`) : transfer;
}
