import { randomUUID } from 'node:crypto';
import type { Answer, ArrivedRequest } from './stand-in.ts';

/** One request as it arrived; its path follows /v2.01/ and the ClientId. */
export interface SeenRequest extends Omit<ArrivedRequest, 'text'> {
  readonly body: Readonly<Record<string, unknown>>;
}

/** A user; the members that this project reads, as Mangopay spells them. */
interface StandInUser {
  readonly Id: string;
  readonly UserCategory: 'PAYER' | 'OWNER' | 'PLATFORM';
}

interface Money {
  readonly Currency: string;
  readonly Amount: number;
}

type StandInWallet = ReturnType<typeof walletOwnedBy>;
/** A transfer, a pay-in, a payout, or the refund of one. */
type StandInTransfer = ReturnType<typeof transactionOf>;
/** A chargeback of a pay-in. */
type StandInDispute = ReturnType<typeof disputeOf>;

/** What differs from one transaction to another. */
interface Members {
  readonly AuthorId: string;
  readonly DebitedFunds: Money;
  /** Null of a pay-in. */
  readonly DebitedWalletId: string | null;
  /** Null of a payout. */
  readonly CreditedWalletId: string | null;
  readonly Tag: string | null;
  readonly Type?: 'TRANSFER' | 'PAYIN' | 'PAYOUT';
  readonly Status?: 'CREATED' | 'SUCCEEDED' | 'FAILED';
  /** Of a refund. */
  readonly InitialTransactionId?: string;
}

/** The ids of a party at the provider. */
export interface PartyOfStandIn {
  readonly [name: string]: string;
  readonly user: string;
  readonly wallet: string;
}

const perPage = { most: 100, unless: 10 } as const;

/** Users, wallets and transfers, the rules of Mangopay for them, and what happens there besides requests. */
export function createWorld() {
  const users: StandInUser[] = [];
  const wallets: StandInWallet[] = [];
  /** The newest last; refunds are among them. */
  const transfers: StandInTransfer[] = [];
  const payIns: StandInTransfer[] = [];
  const payOuts: StandInTransfer[] = [];
  const disputes: StandInDispute[] = [];
  const hidden = new Set<string>();
  const toAuthenticate = new Set<string>();
  const walletOf = (id: unknown) => wallets.find(({ Id }) => Id === id);
  const userOf = (id: unknown) => users.find(({ Id }) => Id === id);

  function addWallet(...of: Parameters<typeof walletOwnedBy>): StandInWallet {
    const wallet = walletOwnedBy(...of);
    wallets.push(wallet);
    return wallet;
  }

  function createWallet({ Owners, Currency, Description, Tag }: Record<string, unknown>): Answer {
    const [owner] = Array.isArray(Owners) ? Owners : [];
    if (userOf(owner) === undefined) return refused(400, 'param_error', 'Owners');
    return ok(addWallet(owner, String(Currency), String(Description), String(Tag)));
  }

  /** Moves the money of a transfer if there is enough; that decides its status. */
  function settle(transfer: StandInTransfer): StandInTransfer {
    const [from, to] = [walletOf(transfer.DebitedWalletId), walletOf(transfer.CreditedWalletId)];
    if (from === undefined || to === undefined) throw new Error('a wallet is gone');
    const { Amount } = transfer.DebitedFunds;
    if (from.Balance.Amount < Amount) return fail(transfer, '001001', 'Unsufficient wallet balance');
    from.Balance = { ...from.Balance, Amount: from.Balance.Amount - Amount };
    to.Balance = { ...to.Balance, Amount: to.Balance.Amount + Amount };
    const success = { ResultCode: '000000', ResultMessage: 'Success', PendingUserAction: null };
    return Object.assign(transfer, { Status: 'SUCCEEDED', ...success });
  }

  const fail = (transfer: StandInTransfer, ResultCode: string, ResultMessage: string) =>
    Object.assign(transfer, { Status: 'FAILED', ResultCode, ResultMessage, PendingUserAction: null });

  function made(members: Members): StandInTransfer {
    const transfer = transactionOf(members);
    transfers.push(transfer);
    return transfer;
  }

  /** Fills or empties a wallet from outside. Returns the members of that transaction. */
  function outside(Type: 'PAYIN' | 'PAYOUT', id: string, amount: number) {
    const wallet = byId(wallets, id);
    const isIn = Type === 'PAYIN';
    wallet.Balance = { ...wallet.Balance, Amount: wallet.Balance.Amount + (isIn ? amount : -amount) };
    const ends = { DebitedWalletId: isIn ? null : id, CreditedWalletId: isIn ? id : null };
    const DebitedFunds = { Currency: wallet.Currency, Amount: amount };
    return { Type, AuthorId: wallet.Owners[0], DebitedFunds, Tag: null, ...ends };
  }

  /** A card payment fills a wallet. */
  function payIn(id: string, amount: number): StandInTransfer {
    const paid = transactionOf({ ...outside('PAYIN', id, amount), Status: 'SUCCEEDED' });
    payIns.push(paid);
    return paid;
  }

  /** Staff pay out of a wallet to a bank account: the wallet is debited at once, and the payout is under way. */
  function payOutOutside(id: string, amount: number): void {
    payOuts.push(transactionOf(outside('PAYOUT', id, amount)));
  }

  /** The buyer contests a pay-in, all of it or a part. */
  function dispute(payInId: string, more: Partial<StandInDispute> = {}): StandInDispute {
    const disputed = Object.assign(disputeOf(byId(payIns, payInId)), more);
    disputes.push(disputed);
    return disputed;
  }

  function createTransfer(body: Record<string, unknown>): Answer {
    const { AuthorId, DebitedFunds, DebitedWalletId, CreditedWalletId, Tag } = body;
    const author = userOf(AuthorId);
    const [from, to] = [walletOf(DebitedWalletId), walletOf(CreditedWalletId)];
    if (author === undefined) return refused(400, 'param_error', 'AuthorId');
    if (from === undefined) return refused(400, 'param_error', 'DebitedWalletId');
    if (to === undefined || to === from) return refused(400, 'param_error', 'CreditedWalletId');
    const funds = DebitedFunds as Money;
    if (funds.Amount < 1) return refused(400, 'param_error', 'DebitedFunds');
    if (new Set([funds.Currency, from.Currency, to.Currency]).size > 1) {
      return refused(400, 'currency_incompatibility_error', 'Currency');
    }
    const transfer = made({
      AuthorId: author.Id,
      DebitedFunds: funds,
      DebitedWalletId: from.Id,
      CreditedWalletId: to.Id,
      Tag: String(Tag),
    });
    return ok(structuredClone(begin(transfer, author, from, to)));
  }

  function begin(
    transfer: StandInTransfer,
    author: StandInUser,
    from: StandInWallet,
    to: StandInWallet,
  ): StandInTransfer {
    if (from.Owners[0] !== author.Id) return fail(transfer, '001002', 'Author is not the wallet owner');
    if (userOf(to.Owners[0])?.UserCategory === 'PAYER' && to.Owners[0] !== author.Id) {
      return fail(transfer, '002702', 'Users with category PAYER cannot receive transfers');
    }
    if (!toAuthenticate.has(author.Id)) return settle(transfer);
    const RedirectUrl = `https://sca.sandbox.mangopay.com/?token=sca_${transfer.Id}`;
    return Object.assign(transfer, { PendingUserAction: { RedirectUrl } });
  }

  function refund(initial: StandInTransfer, amount: number, tag: string | null): StandInTransfer {
    const transfer = made({
      AuthorId: initial.AuthorId,
      DebitedFunds: { ...initial.DebitedFunds, Amount: amount },
      DebitedWalletId: initial.CreditedWalletId,
      CreditedWalletId: initial.DebitedWalletId,
      InitialTransactionId: initial.Id,
      Tag: tag,
    });
    const refunded = transfers
      .filter(
        ({ InitialTransactionId, Status }) => InitialTransactionId === initial.Id && Status === 'SUCCEEDED',
      )
      .reduce((sum, { DebitedFunds }) => sum + DebitedFunds.Amount, 0);
    if (refunded + amount > initial.CreditedFunds.Amount) {
      return fail(transfer, '001401', 'Transaction has already been successfully refunded');
    }
    return settle(transfer);
  }

  function createRefund(id: string, { AuthorId, DebitedFunds, Tag }: Record<string, unknown>): Answer {
    const initial = transfers.find(({ Id }) => Id === id);
    if (initial === undefined) return refused(404, 'ressource_not_found');
    if (initial.Status !== 'SUCCEEDED') return refused(400, 'param_error', 'TransferId');
    if (AuthorId !== initial.AuthorId) return refused(400, 'param_error', 'AuthorId');
    const funds = (DebitedFunds ?? initial.DebitedFunds) as Money;
    return ok(refund(initial, funds.Amount, String(Tag)));
  }

  function page<T extends { readonly CreationDate: number }>(
    all: readonly T[],
    query: URLSearchParams,
  ): Answer {
    const size = Number(query.get('per_page') ?? perPage.unless);
    if (!(size >= 1 && size <= perPage.most)) return refused(400, 'param_error', 'per_page');
    const ordered = query.get('Sort') === 'CreationDate:DESC' ? all.toReversed() : all;
    const from = (Number(query.get('page') ?? 1) - 1) * size;
    return ok(ordered.slice(from, from + size));
  }

  /** A transaction as lists show it: without the page for the buyer and the transfer that a refund is of. */
  const inList = ({ PendingUserAction, InitialTransactionId, ...base }: StandInTransfer) => base;

  function carryOut({ method, path, query, body }: SeenRequest): Answer {
    const [, kind, id, part] = /^\/(\w+)(?:\/([\w-]+)(?:\/(\w+))?)?$/.exec(path) ?? [];
    switch (`${method} ${kind}${id === undefined ? '' : '/id'}${part === undefined ? '' : `/${part}`}`) {
      case 'GET users/id':
        return found(userOf(id));
      case 'GET users/id/wallets': {
        const theirs = wallets.filter(({ Owners }) => Owners[0] === id);
        return userOf(id) === undefined ? refused(404, 'ressource_not_found') : page(theirs, query);
      }
      case 'POST wallets':
        return createWallet(body);
      case 'GET wallets/id':
        return hidden.has(walletOf(id)?.Owners[0] ?? '') ? toShow : found(walletOf(id));
      case 'PUT wallets/id': {
        const wallet = walletOf(id);
        if (wallet !== undefined && typeof body.Tag === 'string') wallet.Tag = body.Tag;
        return found(wallet);
      }
      case 'GET wallets/id/transactions': {
        const through = [...payIns, ...transfers, ...payOuts].filter((one) =>
          [one.DebitedWalletId, one.CreditedWalletId].includes(id ?? ''),
        );
        return page(through.map(inList), query);
      }
      case 'GET wallets/id/disputes': {
        const into = payIns.filter(({ CreditedWalletId }) => CreditedWalletId === id).map(({ Id }) => Id);
        const theirs = disputes.filter(({ InitialTransactionId }) => into.includes(InitialTransactionId));
        return walletOf(id) === undefined ? refused(404, 'ressource_not_found') : page(theirs, query);
      }
      case 'GET disputes/id':
        return found(disputes.find(({ Id }) => Id === id));
      case 'GET payins/id':
        return found(payIns.find(({ Id }) => Id === id));
      case 'POST transfers':
        return createTransfer(body);
      case 'GET transfers/id':
        return found(transfers.find(({ Id, Nature }) => Id === id && Nature === 'REGULAR'));
      case 'POST transfers/id/refunds':
        return createRefund(id ?? '', body);
      case 'GET refunds/id':
        return found(transfers.find(({ Id, Nature }) => Id === id && Nature === 'REFUND'));
      default:
        return refused(405, 'no_such_endpoint');
    }
  }

  return {
    ...{ users, wallets, transfers, payIns, disputes, carryOut, payIn, payOutOutside, dispute },
    /** Makes a user with a wallet that a pay-in of this much fills. Returns the ids of a party. */
    party: (category: StandInUser['UserCategory'], currency: string, amount: number): PartyOfStandIn => {
      const user = idOf('user_m');
      users.push({ Id: user, UserCategory: category });
      const { Id: wallet } = addWallet(user, currency);
      if (amount > 0) payIn(wallet, amount);
      return { user, wallet };
    },
    /** A transfer of this user needs authentication first. */
    askToAuthenticate: (userId: string) => void toAuthenticate.add(userId),
    /** The wallets of this user are shown only once they have authenticated. */
    hideWallets: (userId: string) => void hidden.add(userId),
    /** The user of a transfer has authenticated, or the time for it is over. */
    authenticated: (transferId: string, isConfirmed: boolean) => {
      const transfer = byId(transfers, transferId);
      if (transfer.Status !== 'CREATED') throw new Error(`${transferId} waits for nobody`);
      if (isConfirmed) settle(transfer);
      else fail(transfer, '007102', 'Transfer authentication expired. Please initiate a new request.');
    },
    /** Staff transfer from a wallet, by the dashboard. */
    transferOutside: (from: string, to: string, amount: number, tag?: string) => {
      const { Owners, Currency } = byId(wallets, from);
      const DebitedFunds = { Currency, Amount: amount };
      const ends = { DebitedWalletId: from, CreditedWalletId: byId(wallets, to).Id };
      return settle(made({ AuthorId: Owners[0], DebitedFunds, Tag: tag ?? null, ...ends }));
    },
    /** A dispute ends. */
    endDispute: (disputeId: string, ResultCode: 'LOST' | 'WON' | 'VOID') =>
      void Object.assign(byId(disputes, disputeId), { Status: 'CLOSED', ResultCode, ClosedDate: nowS() }),
    /** Refunds a transfer, all of it or a part, by the dashboard. */
    refundOutside: (transferId: string, amount?: number) => {
      const initial = byId(transfers, transferId);
      return refund(initial, amount ?? initial.DebitedFunds.Amount, null);
    },
  };
}

const nowS = () => Math.floor(Date.now() / 1000);
const idOf = (prefix: string) => `${prefix}_${randomUUID().replaceAll('-', '')}`;

function walletOwnedBy(owner: string, currency: string, description = '', tag: string | null = null) {
  return {
    Id: idOf('wlt_m'),
    Owners: [owner] as const,
    Currency: currency,
    Description: description,
    CreationDate: nowS(),
    Tag: tag,
    Balance: { Currency: currency, Amount: 0 },
  };
}

const prefixes = { TRANSFER: 'xfer_c', PAYIN: 'wt', PAYOUT: 'po' } as const;

function transactionOf({ Type = 'TRANSFER', Status = 'CREATED', ...members }: Members) {
  const isRefund = members.InitialTransactionId !== undefined;
  return {
    Id: idOf(isRefund ? 'xfer_refund_c' : prefixes[Type]),
    CreationDate: nowS(),
    ...members,
    CreditedFunds: members.DebitedFunds,
    Fees: { ...members.DebitedFunds, Amount: 0 },
    Type,
    Nature: isRefund ? 'REFUND' : 'REGULAR',
    Status,
    ResultCode: null as string | null,
    ResultMessage: null as string | null,
    PendingUserAction: null as { readonly RedirectUrl: string } | null,
  };
}

function disputeOf({ Id, DebitedFunds }: { readonly Id: string; readonly DebitedFunds: Money }) {
  return {
    Id: idOf('dispute_m'),
    InitialTransactionId: Id,
    InitialTransactionType: 'PAYIN',
    DisputeType: 'CONTESTABLE' as 'CONTESTABLE' | 'NOT_CONTESTABLE' | 'RETRIEVAL',
    DisputedFunds: DebitedFunds,
    ContestedFunds: null as Money | null,
    CreationDate: nowS(),
    Status: 'PENDING_CLIENT_ACTION',
    ResultCode: '' as 'LOST' | 'WON' | 'VOID' | '',
    ClosedDate: null as number | null,
  };
}

/** Returns what has an id; throws if nothing has it. */
function byId<T extends { readonly Id: string }>(all: readonly T[], id: string): T {
  const found = all.find(({ Id }) => Id === id);
  if (found === undefined) throw new Error(`there is no ${id}`);
  return found;
}

/** The response for a wallet whose owner has to authenticate first. */
const toShow: Answer = {
  ...{ status: 401, body: { Message: 'SCA required', Type: 'unauthorized', Id: 'req-standin' } },
  headers: {
    'WWW-Authenticate': 'PendingUserAction RedirectUrl=https://sca.sandbox.mangopay.com/?token=sca_w',
  },
};

const ok = (body: object): Answer => ({ status: 200, body: structuredClone(body) });
const found = (body: object | undefined): Answer =>
  body === undefined ? refused(404, 'ressource_not_found') : ok(body);

/** An error, which repeats a secret as Mangopay might. */
export function refused(status: number, type: string, field?: string): Answer {
  const errors = field === undefined ? null : { [field]: `The ${field} field is invalid` };
  const body = { Message: `No, standin-api-key-0123456789.`, Type: type, Id: 'req-standin', Date: 1, errors };
  return { status, body };
}
