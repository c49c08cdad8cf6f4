import { createHash } from 'node:crypto';
import { type Declined, unexplainedWords } from '../../domain/payment.ts';
import { type PaymentOrder, ProviderFailure } from '../provider.ts';
import type { MangopayApi } from './client.ts';
import type { OrderLedger, Transfer } from './snapshot.ts';

/** The wallets of orders, of which there is one for an order at most, and what went through them. */
export interface Ledgers {
  /** That of an order, by its reference or else among the wallets of the escrow user; undefined if it has none. */
  find(api: MangopayApi, order: PaymentOrder): Promise<OrderLedger | undefined>;
  /** That of an order, which is made if it has none; or why Mangopay makes none. */
  open(api: MangopayApi, order: PaymentOrder): Promise<OrderLedger | { readonly apiError: Declined }>;
  /** What went through a wallet by now. What was answered just now may not be in the list yet, and is added. */
  again(api: MangopayApi, ledger: OrderLedger, answered?: Transfer): Promise<OrderLedger>;
  /** Notes at Mangopay that nothing is to come into a wallet any more. */
  close(api: MangopayApi, order: PaymentOrder, walletId: string): Promise<void>;
}

/** What is read of a wallet. */
interface Wallet {
  readonly Id: string;
  readonly Tag?: string | null;
  readonly CreationDate: number;
}

/**
 * Age of an order, in milliseconds, from which on a wallet is looked for before one is made. Mangopay keeps idempotency
 * keys for 24 hours; the rest is for a request that is long on its way.
 */
const keyTrustedMs = 12 * 60 * 60 * 1000;
/** How far Mangopay's clock may be behind ours, in seconds: a search ends that much before the order. */
const clockDifferenceS = 600;
/** Wallets that a search goes through before it gives up, and how many of anything come at a time, Mangopay's maximum. */
const listLimits = { wallets: 5_000, perPage: 100 } as const;

/** The idempotency key of one thing that is done for an order: 32 characters, of the 16 to 36 that Mangopay takes. */
export function keyOf(thing: string, id: string): string {
  return createHash('sha256').update(`${thing} ${id}`).digest('hex').slice(0, 32);
}

/** Mangopay answered with a fault of its own, and there is no wallet: to make one under another key could be a second one. */
const noWallet: Declined = {
  code: 'no_wallet',
  words: unexplainedWords,
  detail: 'Mangopay failed to make the wallet of the order, and its key is used up',
};

/** The Tag by which a wallet that was closed is told from one that is open. */
const closedTag = ({ holdId }: PaymentOrder) => `${holdId}${closed}`;
const closed = ' closed';

/** The wallets of this user. */
export function createLedgers(escrowUser: string, nowMs: () => number): Ledgers {
  async function search(api: MangopayApi, order: PaymentOrder): Promise<Wallet | undefined> {
    const sinceS = Math.floor(order.openedAtMs / 1000) - clockDifferenceS;
    const { wallets, perPage } = listLimits;
    for (let page = 1; page <= wallets / perPage; page += 1) {
      const query = { page: `${page}`, per_page: `${perPage}`, Sort: 'CreationDate:DESC' };
      const found = await api.get<readonly Wallet[]>(`/users/${escrowUser}/wallets`, query);
      // Where it ends, and with it what is ABSENT, goes by the order alone.
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

  const read = (api: MangopayApi, { Id, Tag }: Wallet): Promise<OrderLedger> =>
    listed(api, { walletId: Id, isClosed: Tag?.endsWith(closed) ?? false });

  return {
    again: listed,
    find: async (api, order) => {
      if (order.reference !== undefined) {
        const hold = await api.get<Transfer>(`/transfers/${order.reference}`);
        return listed(api, { walletId: walletOf(hold), isClosed: false }, hold);
      }
      const wallet = await search(api, order);
      return wallet && read(api, wallet);
    },
    open: async (api, order) => {
      const isOld = nowMs() - order.openedAtMs > keyTrustedMs;
      const found = isOld ? await search(api, order) : undefined;
      if (found !== undefined) return read(api, found);
      const body = {
        Owners: [escrowUser],
        Description: `Artseal ${order.escrowId}`,
        Currency: order.currency,
        Tag: order.holdId,
      };
      const made = await api.post<Wallet>('/wallets', body, keyOf('wallet', order.holdId));
      if (made.kind === 'REFUSED') return { apiError: made.apiError };
      if (made.kind === 'DONE' && !made.isStored) {
        return { walletId: made.resource.Id, isClosed: false, transfers: [] };
      }
      if (made.kind === 'DONE') return read(api, await api.get<Wallet>(`/wallets/${made.resource.Id}`));
      const despite = await search(api, order);
      return despite === undefined ? { apiError: noWallet } : read(api, despite);
    },
    close: (api, order, walletId) => api.put(`/wallets/${walletId}`, { Tag: closedTag(order) }),
  };
}

async function listed(
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

/** The wallet that a hold is in. */
function walletOf({ Id, CreditedWalletId }: Transfer): string {
  if (CreditedWalletId === null) throw new ProviderFailure('FAILED', `Mangopay: ${Id} has no wallet`);
  return CreditedWalletId;
}

/**
 * A transaction as it is now, and in full: a list leaves out where the buyer has to act and what a refund is of, and what was
 * stored may be of the past.
 */
function current(api: MangopayApi, transfer: Transfer, walletId: string): Promise<Transfer> | Transfer {
  const { Id, Type, Nature, Status, CreditedWalletId } = transfer;
  if (Nature === 'REFUND' && CreditedWalletId === walletId) return api.get<Transfer>(`/refunds/${Id}`);
  const isWaiting = Status === 'CREATED' && Type === 'TRANSFER' && Nature === 'REGULAR';
  return isWaiting ? api.get<Transfer>(`/transfers/${Id}`) : transfer;
}
