import { randomUUID } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { TestContext } from 'node:test';
import { listenLocally } from './local-server.ts';

/** What goes wrong with a request. */
export type Fault =
  /** The connection breaks before anything has happened. */
  | 'lose-request'
  /** Everything happens, and then the connection breaks. */
  | 'lose-answer'
  /** Nothing happens, and the answer 500 is what the key is known by. */
  | 'fail-and-store'
  /** Everything happens, but the answer 500 is what the key is known by. */
  | 'do-and-fail'
  /** Refused before anything is looked at, the key stays free: 401, 429, 503. */
  | { readonly status: number }
  /** Refused with the key used up: 400, 403. */
  | { readonly refusal: number }
  /** Waits, with its key in use, before anything happens; then goes on. */
  | { readonly until: () => Promise<void> }
  /** Waits before the request arrives at all. */
  | { readonly onTheWay: () => Promise<void> };

/** One request as it arrived. */
export interface SeenRequest {
  readonly method: string;
  /** Behind /v2.01/ and the ClientId. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  readonly idempotencyKey: string | undefined;
  readonly headers: IncomingMessage['headers'];
}

/** A user; the members that this project looks at, as Mangopay spells them. */
export interface StandInUser {
  readonly Id: string;
  UserCategory: 'PAYER' | 'OWNER' | 'PLATFORM';
}

interface Money {
  readonly Currency: string;
  readonly Amount: number;
}

/** A wallet. */
export interface StandInWallet {
  readonly Id: string;
  readonly Owners: readonly [string];
  readonly Currency: string;
  readonly Description: string;
  readonly CreationDate: number;
  Tag: string | null;
  Balance: Money;
}

/** A transfer, or the refund of one. */
export interface StandInTransfer {
  readonly Id: string;
  readonly Tag: string | null;
  readonly CreationDate: number;
  readonly AuthorId: string;
  readonly DebitedFunds: Money;
  readonly CreditedFunds: Money;
  readonly Fees: Money;
  readonly Type: 'TRANSFER';
  readonly Nature: 'REGULAR' | 'REFUND';
  readonly DebitedWalletId: string;
  readonly CreditedWalletId: string;
  /** Of a refund. */
  readonly InitialTransactionId?: string;
  Status: 'CREATED' | 'SUCCEEDED' | 'FAILED';
  ResultCode: string | null;
  ResultMessage: string | null;
  PendingUserAction: { readonly RedirectUrl: string } | null;
}

/** Mangopay as far as this project uses it, over HTTP and with a memory. */
export interface MangopayStandIn {
  /** http://127.0.0.1:port */
  readonly url: string;
  readonly clientId: string;
  readonly apiKey: string;
  readonly escrowUser: string;
  readonly hookSecret: string;
  readonly users: StandInUser[];
  readonly wallets: StandInWallet[];
  /** The newest last; refunds are among them. */
  readonly transfers: StandInTransfer[];
  /** The requests that arrived, those for tokens left out, the newest last. */
  readonly requests: SeenRequest[];
  /** How many tokens were given out. */
  tokens(): number;
  /** Makes a user with a wallet that has this much; the names of a party. */
  party(category: StandInUser['UserCategory'], currency: string, amount: number): PartyOfStandIn;
  /** What happens to the next request whose method and path match, such as /^POST \/transfers$/. */
  failNext(pattern: RegExp, fault: Fault): void;
  /** Whoever makes a transfer as this user has to authenticate first. */
  askToAuthenticate(userId: string): void;
  /** The user of a transfer has authenticated, or the time for it is over. */
  authenticated(transferId: string, isConfirmed: boolean): void;
  /** Has every token and key refused, or none any more. */
  revokeKey(isRevoked: boolean): void;
  /** Has the tokens that were given out refused. */
  endTokens(): void;
  /** Forgets all idempotency keys, as Mangopay does after 24 hours. */
  forgetKeys(): void;
  /** Refunds a transfer from outside, all of it or a part; the refund. */
  refundOutside(transferId: string, amount?: number): StandInTransfer;
}

/** The institution's names for a party. */
export interface PartyOfStandIn {
  readonly [name: string]: string;
  readonly user: string;
  readonly wallet: string;
}

interface Answer {
  readonly status: number;
  readonly body: object;
  readonly headers?: Readonly<Record<string, string>>;
}

interface UsedKey {
  answer: Answer | undefined;
}

const keyPattern = /^[A-Za-z0-9-]{16,36}$/;
/** A token lives so long in Mangopay's sandbox, in seconds. */
const tokenLifeS = 1_200;
const perPage = { most: 100, unless: 10 } as const;

/** Starts a stand-in, closed after the test. */
export async function startMangopayStandIn(test: Pick<TestContext, 'after'>): Promise<MangopayStandIn> {
  const clientId = 'artseal-test';
  const apiKey = 'standin-api-key-0123456789';
  const world = createWorld();
  const requests: SeenRequest[] = [];
  const tokens = new Set<string>();
  const keys = new Map<string, UsedKey>();
  let isRevoked = false;
  let given = 0;
  const faults: { pattern: RegExp; fault: Fault }[] = [];
  const faultOf = (line: string): Fault | undefined => {
    const place = faults.findIndex(({ pattern }) => pattern.test(line));
    return place < 0 ? undefined : faults.splice(place, 1)[0]?.fault;
  };

  function giveToken({ headers }: IncomingMessage, body: string): Answer {
    const basic = `Basic ${Buffer.from(`${clientId}:${apiKey}`).toString('base64')}`;
    if (isRevoked || headers.authorization !== basic)
      return { status: 401, body: { error: 'invalid_client' } };
    if (body !== 'grant_type=client_credentials') return { status: 400, body: { error: 'invalid_request' } };
    given += 1;
    const access_token = `token-${given}`;
    tokens.add(access_token);
    return { status: 200, body: { access_token, token_type: 'Bearer', expires_in: tokenLifeS } };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const text = Buffer.concat(chunks).toString();
    const { method = '', headers } = request;
    const url = new URL(request.url ?? '', 'http://stand-in');
    if (`${method} ${url.pathname}` === 'POST /v2.01/oauth/token')
      return send(response, giveToken(request, text));
    const prefix = `/v2.01/${clientId}`;
    const path = url.pathname.startsWith(`${prefix}/`) ? url.pathname.slice(prefix.length) : url.pathname;
    const key = headers['idempotency-key'];
    const body = text === '' ? {} : JSON.parse(text);
    const idempotencyKey = typeof key === 'string' ? key : undefined;
    const seen = { method, path, query: url.searchParams, body, idempotencyKey, headers };
    const fault = faultOf(`${method} ${path}`);
    if (fault === 'lose-request') return void response.destroy();
    if (typeof fault === 'object' && 'onTheWay' in fault) await fault.onTheWay();
    requests.push(seen);
    if (typeof fault === 'object' && 'status' in fault) return send(response, refused(fault.status, 'fault'));
    const bearer = /^Bearer (.+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
    if (isRevoked || !tokens.has(bearer)) return send(response, refused(401, 'invalid_token'));
    const answer = await once(seen, fault);
    if (fault === 'lose-answer') return void response.destroy();
    send(response, answer);
  }

  /** Carries a request out unless its key was used before, whatever came of that. */
  async function once(seen: SeenRequest, fault: Fault | undefined): Promise<Answer> {
    const { method, path, idempotencyKey: key } = seen;
    const stored = /^\/responses\/(.+)$/.exec(path)?.[1];
    if (method === 'GET' && stored !== undefined) return storedAnswer(keys.get(stored));
    if (method !== 'POST' || key === undefined) return world.carryOut(seen);
    if (!keyPattern.test(key)) return refused(400, 'param_error', 'Idempotency-Key');
    if (keys.has(key)) return refused(409, 'idempotent_creation_conflict');
    const entry: UsedKey = { answer: undefined };
    keys.set(key, entry);
    if (typeof fault === 'object' && 'until' in fault) await fault.until();
    entry.answer = structuredClone(answerDespite(fault, seen));
    return entry.answer;
  }

  function answerDespite(fault: Fault | undefined, seen: SeenRequest): Answer {
    if (typeof fault === 'object' && 'refusal' in fault) return refused(fault.refusal, 'param_error');
    if (fault === 'fail-and-store') return refused(500, 'internal_error');
    const done = world.carryOut(seen);
    return fault === 'do-and-fail' ? refused(500, 'internal_error') : done;
  }

  const server = createServer((request, response) => {
    serve(request, response).catch((error) => response.destroy(error));
  });
  const url = await listenLocally(test, server, () => server.closeAllConnections());
  const { users, wallets, transfers, askToAuthenticate, authenticated, refundOutside, party } = world;
  const escrowUser = 'user_m_escrow';
  users.push({ Id: escrowUser, UserCategory: 'PLATFORM' });
  return {
    ...{ url, clientId, apiKey, escrowUser, hookSecret: 'hook-secret-of-the-stand-in-0123456789' },
    ...{ users, wallets, transfers, requests, party, askToAuthenticate, authenticated, refundOutside },
    tokens: () => given,
    failNext: (pattern, fault) => faults.push({ pattern, fault }),
    revokeKey: (revoked) => {
      isRevoked = revoked;
      if (revoked) tokens.clear();
    },
    endTokens: () => tokens.clear(),
    forgetKeys: () => keys.clear(),
  };
}

function send(response: ServerResponse, { status, body, headers }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json; charset=utf-8', ...headers });
  response.end(JSON.stringify(body));
}

/** What View an API Response says of a key: nothing as long as the first request is under way. */
function storedAnswer(used: UsedKey | undefined): Answer {
  if (used?.answer === undefined) return refused(404, 'ressource_not_found');
  const { status, body } = used.answer;
  return { status: 200, body: { StatusCode: String(status), Resource: body } };
}

function refused(status: number, type: string, field?: string): Answer {
  const errors = field === undefined ? null : { [field]: `The ${field} field is invalid` };
  const body = { Message: `No, standin-api-key-0123456789.`, Type: type, Id: 'req-standin', Date: 1, errors };
  return { status, body };
}

/** Users, wallets and transfers, and the rules of Mangopay for them. */
function createWorld() {
  const users: StandInUser[] = [];
  const wallets: StandInWallet[] = [];
  const transfers: StandInTransfer[] = [];
  const toAuthenticate = new Set<string>();
  const walletOf = (id: unknown) => wallets.find(({ Id }) => Id === id);
  const userOf = (id: unknown) => users.find(({ Id }) => Id === id);
  const nowS = () => Math.floor(Date.now() / 1000);
  const idOf = (prefix: string) => `${prefix}_${randomUUID().replaceAll('-', '')}`;

  function addWallet(owner: string, currency: string, amount: number, more: object = {}): StandInWallet {
    const wallet: StandInWallet = {
      Id: idOf('wlt_m'),
      Owners: [owner],
      Currency: currency,
      Description: '',
      CreationDate: nowS(),
      Tag: null,
      Balance: { Currency: currency, Amount: amount },
      ...more,
    };
    wallets.push(wallet);
    return wallet;
  }

  function createWallet({ Owners, Currency, Description, Tag }: Record<string, unknown>): Answer {
    const [owner] = Array.isArray(Owners) && Owners.length === 1 ? Owners : [];
    if (userOf(owner) === undefined) return refused(400, 'param_error', 'Owners');
    if (typeof Description !== 'string' || Description === '')
      return refused(400, 'param_error', 'Description');
    if (typeof Currency !== 'string' || !/^[A-Z]{3}$/.test(Currency)) {
      return refused(400, 'param_error', 'Currency');
    }
    if (String(Tag).length > 255) return refused(400, 'param_error', 'Tag');
    return ok(addWallet(owner, Currency, 0, { Description, Tag: Tag ?? null }));
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

  function made(
    nature: 'REGULAR' | 'REFUND',
    members: Pick<
      StandInTransfer,
      'AuthorId' | 'DebitedFunds' | 'DebitedWalletId' | 'CreditedWalletId' | 'Tag'
    > & {
      InitialTransactionId?: string;
    },
  ): StandInTransfer {
    const transfer: StandInTransfer = {
      Id: idOf(nature === 'REFUND' ? 'xfer_refund_c' : 'xfer_c'),
      CreationDate: nowS(),
      ...members,
      CreditedFunds: members.DebitedFunds,
      Fees: { ...members.DebitedFunds, Amount: 0 },
      Type: 'TRANSFER',
      Nature: nature,
      Status: 'CREATED',
      ResultCode: null,
      ResultMessage: null,
      PendingUserAction: null,
    };
    transfers.push(transfer);
    return transfer;
  }

  function createTransfer(body: Record<string, unknown>): Answer {
    const { AuthorId, DebitedFunds, Fees, DebitedWalletId, CreditedWalletId, Tag } = body;
    const author = userOf(AuthorId);
    const [from, to] = [walletOf(DebitedWalletId), walletOf(CreditedWalletId)];
    if (author === undefined) return refused(400, 'param_error', 'AuthorId');
    if (from === undefined) return refused(400, 'param_error', 'DebitedWalletId');
    if (to === undefined || to === from) return refused(400, 'param_error', 'CreditedWalletId');
    const [funds, fees] = [readMoney(DebitedFunds), readMoney(Fees)];
    if (funds === undefined || funds.Amount < 1) return refused(400, 'param_error', 'DebitedFunds');
    if (fees === undefined || fees.Amount !== 0) return refused(400, 'param_error', 'Fees');
    if (new Set([funds.Currency, fees.Currency, from.Currency, to.Currency]).size > 1) {
      return refused(400, 'currency_incompatibility_error', 'Currency');
    }
    const transfer = made('REGULAR', {
      AuthorId: author.Id,
      DebitedFunds: funds,
      DebitedWalletId: from.Id,
      CreditedWalletId: to.Id,
      Tag: typeof Tag === 'string' ? Tag : null,
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

  function refund(
    initial: StandInTransfer,
    author: string,
    amount: number,
    tag: string | null,
  ): StandInTransfer {
    const transfer = made('REFUND', {
      AuthorId: author,
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

  function createRefund(id: string, { AuthorId, DebitedFunds, Fees, Tag }: Record<string, unknown>): Answer {
    const initial = transfers.find(({ Id }) => Id === id);
    if (initial === undefined) return refused(404, 'ressource_not_found');
    if (initial.Status !== 'SUCCEEDED') return refused(400, 'param_error', 'TransferId');
    if (AuthorId !== initial.AuthorId) return refused(400, 'param_error', 'AuthorId');
    if ((DebitedFunds === undefined) !== (Fees === undefined)) return refused(400, 'param_error', 'Fees');
    const funds = DebitedFunds === undefined ? initial.DebitedFunds : readMoney(DebitedFunds);
    if (funds === undefined || funds.Amount < 1) return refused(400, 'param_error', 'DebitedFunds');
    return ok(refund(initial, initial.AuthorId, funds.Amount, typeof Tag === 'string' ? Tag : null));
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

  /** A transaction as lists show it: its base alone, without where the buyer has to act. */
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
        return found(walletOf(id));
      case 'PUT wallets/id': {
        const wallet = walletOf(id);
        if (wallet !== undefined && typeof body.Tag === 'string') wallet.Tag = body.Tag;
        return found(wallet);
      }
      case 'GET wallets/id/transactions': {
        const through = transfers.filter((one) =>
          [one.DebitedWalletId, one.CreditedWalletId].includes(id ?? ''),
        );
        return page(through.map(inList), query);
      }
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
    ...{ users, wallets, transfers, carryOut },
    party: (category: StandInUser['UserCategory'], currency: string, amount: number): PartyOfStandIn => {
      const user = idOf('user_m');
      users.push({ Id: user, UserCategory: category });
      return { user, wallet: addWallet(user, currency, amount).Id };
    },
    askToAuthenticate: (userId: string) => void toAuthenticate.add(userId),
    authenticated: (transferId: string, isConfirmed: boolean) => {
      const transfer = transfers.find(({ Id }) => Id === transferId);
      if (transfer?.Status !== 'CREATED') throw new Error(`${transferId} waits for nobody`);
      if (isConfirmed) settle(transfer);
      else fail(transfer, '007102', 'Transfer authentication expired. Please initiate a new request.');
    },
    refundOutside: (transferId: string, amount?: number) => {
      const initial = transfers.find(({ Id }) => Id === transferId);
      if (initial === undefined) throw new Error(`there is no ${transferId}`);
      return refund(initial, initial.AuthorId, amount ?? initial.DebitedFunds.Amount, null);
    },
  };
}

const ok = (body: object): Answer => ({ status: 200, body: structuredClone(body) });
const found = (body: object | undefined): Answer =>
  body === undefined ? refused(404, 'ressource_not_found') : ok(body);

/** A sum as Mangopay takes it: an integer, not a string. */
function readMoney(value: unknown): Money | undefined {
  const { Currency, Amount } = Object(value);
  return typeof Currency === 'string' && Number.isSafeInteger(Amount) ? { Currency, Amount } : undefined;
}
