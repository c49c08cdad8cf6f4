import { type Declined, unexplainedWords } from '../../domain/payment.ts';
import { ProviderFailure } from '../provider.ts';

/** What the provider at Mangopay is set up with. */
export interface MangopaySettings {
  readonly clientId: string;
  readonly apiKey: string;
  /** The user who owns the wallets of orders. */
  readonly escrowUser: string;
  /** Stands in the URL of every hook. */
  readonly hookSecret: string;
  /** Origin of the API: that of Mangopay, or of a stand-in. */
  readonly url: string;
}

/** Mangopay's API over HTTP. */
export interface MangopayClient {
  /**
   * Does work that calls Mangopay; its requests end with the signal. Rejects with an Error that can be logged: it has
   * no secret.
   */
  call<T>(signal: AbortSignal, work: (api: MangopayApi) => Promise<T>): Promise<T>;
  /** Ends all calls, now and from now on. */
  close(): void;
}

/**
 * What can be asked of Mangopay within one call. Paths begin behind the ClientId. Whatever is no definite answer, such as
 * 401, 429, 5xx, or none at all, rejects with an ProviderFailure; nothing is sent twice.
 */
export interface MangopayApi {
  /** Reads; undefined if there is no such thing (404). */
  find<T>(path: string, query?: Readonly<Record<string, string>>): Promise<T | undefined>;
  /** Reads what is known to be there. */
  get<T>(path: string, query?: Readonly<Record<string, string>>): Promise<T>;
  /**
   * Creates under an idempotency key. Mangopay answers a key once and from then on 409, for 24 hours; then what it
   * answered is read and handed out.
   */
  post<T>(path: string, body: object, key: string): Promise<Posted<T>>;
  put(path: string, body: object): Promise<void>;
}

/** What became of a POST under its key. */
export type Posted<T> =
  /** It made this. `isStored` if that was an earlier request, and the resource is as it was then. */
  | { readonly kind: 'DONE'; readonly resource: T; readonly isStored: boolean }
  /** It was refused, and the key is used up: nothing was or will be done under it. */
  | { readonly kind: 'REFUSED'; readonly apiError: Declined }
  /** An earlier request ended in a fault of Mangopay's, and the key is used up: what was done has to be looked for. */
  | { readonly kind: 'LOST' };

/** Mangopay does not show a wallet before its owner has authenticated. */
export class OwnerHasToAuthenticate extends ProviderFailure {
  constructor(what: string) {
    const why = 'is the user of ARTSEAL_MANGOPAY_ESCROW_USER of the category PLATFORM?';
    super('FAILED', `Mangopay: ${what}, the owner of the wallet has to authenticate first: ${why}`);
  }
}

/** How long one request may take, in milliseconds, should the signal of its call allow for more. */
const requestTimeoutMs = 20_000;
/** How long before its end a token is not used any more, in milliseconds; Mangopay recommends half of that. */
const tokenMarginMs = 60_000;
/** The largest answer that is read, in bytes; a page of a hundred transactions has some 80 kB. */
const answerBytesMax = 1_048_576;
/** What is kept of Mangopay's own words, in characters: a reason, and a code or the name of a request. */
const keptMax = { reason: 500, name: 64 } as const;
/** Answers that say no to what was asked: bad request, forbidden, not found, unprocessable. */
const refusals: readonly number[] = [400, 403, 404, 422];
const version = 'v2.01';

interface Token {
  readonly value: string;
  readonly untilMs: number;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

/** Mangopay's own account of an error. */
interface ErrorBody {
  readonly Message?: unknown;
  readonly Type?: unknown;
  readonly Id?: unknown;
  readonly errors?: Readonly<Record<string, unknown>> | null;
}

/**
 * Opens a client. It is our own since that of Mangopay, mangopay4-nodejs-sdk, takes no signal, follows redirects and, at a
 * connection that is refused or breaks, throws where nobody can catch it: the process ends. Tests hold the two together.
 */
export function createMangopayClient(
  { clientId, apiKey, url }: Pick<MangopaySettings, 'clientId' | 'apiKey' | 'url'>,
  nowMs: () => number,
): MangopayClient {
  const closing = new AbortController();
  let token: Token | undefined;
  let asking: Promise<Token> | undefined;

  async function send(what: string, target: URL, init: RequestInit, signal: AbortSignal): Promise<Answer> {
    const ends = AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]);
    try {
      // A redirect would take the request, and the credentials in it, to another place.
      const response = await fetch(target, { ...init, redirect: 'error', signal: ends });
      const secrets = token === undefined ? [apiKey] : [apiKey, token.value];
      return { status: response.status, headers: response.headers, body: await readJson(response, secrets) };
    } catch (error) {
      signal.throwIfAborted();
      throw new ProviderFailure('UNREACHABLE', `Mangopay: ${what}, ${causeOf(error)}`);
    }
  }

  async function askToken(): Promise<Token> {
    const basic = Buffer.from(`${clientId}:${apiKey}`).toString('base64');
    const init = {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials',
    };
    const answer = await send('token', new URL(`${url}/${version}/oauth/token`), init, closing.signal);
    const { access_token: value, expires_in: seconds } = Object(answer.body);
    if (refusals.includes(answer.status) || answer.status === 401) {
      throw new ProviderFailure('CREDENTIALS_REJECTED', 'Mangopay: it refuses the ClientId and API key');
    }
    if (answer.status !== 200 || typeof value !== 'string' || typeof seconds !== 'number') {
      throw failure('token', answer);
    }
    return { value, untilMs: nowMs() + seconds * 1000 - tokenMarginMs };
  }

  /** The token of now; whoever needs one while it is being asked for waits for the same. */
  async function bearer(signal: AbortSignal): Promise<string> {
    if (token !== undefined && token.untilMs > nowMs()) return token.value;
    asking ??= askToken().finally(() => {
      asking = undefined;
    });
    token = await unlessAborted(asking, signal);
    return token.value;
  }

  function apiOf(signal: AbortSignal): MangopayApi {
    async function request(
      method: string,
      path: string,
      { query, body, key }: { query?: Readonly<Record<string, string>>; body?: object; key?: string } = {},
    ): Promise<Answer> {
      const target = new URL(`${url}/${version}/${clientId}${path}`);
      for (const [name, value] of Object.entries(query ?? {})) target.searchParams.set(name, value);
      const headers = {
        authorization: `Bearer ${await bearer(signal)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const answer = await send(`${method} ${path}`, target, init, signal);
      if (answer.status === 401 && asksForTheOwner(answer)) {
        throw new OwnerHasToAuthenticate(`${method} ${path}`);
      }
      // It may have been withdrawn before its time: the next request asks for another.
      if (answer.status === 401) token = undefined;
      return answer;
    }

    const find = async <T>(
      path: string,
      query?: Readonly<Record<string, string>>,
    ): Promise<T | undefined> => {
      const answer = await request('GET', path, { query: query ?? {} });
      if (answer.status === 404) return undefined;
      return doneOf<T>(`GET ${path}`, answer);
    };

    /** What was answered to the first request under a key. */
    const stored = async <T>(what: string, key: string): Promise<Posted<T>> => {
      const first = await find<{ StatusCode: string | number; Resource: T }>(`/responses/${key}`);
      if (first === undefined) {
        throw new ProviderFailure('FAILED', `Mangopay: ${what}, the first request of its key is under way`);
      }
      const status = Number(first.StatusCode);
      if (status >= 500) return { kind: 'LOST' };
      return posted(what, { status, headers: new Headers(), body: first.Resource }, true);
    };

    return {
      find,
      get: async <T>(path: string, query?: Readonly<Record<string, string>>) => {
        const found = await find<T>(path, query);
        if (found === undefined) throw new ProviderFailure('FAILED', `Mangopay: GET ${path}, status 404`);
        return found;
      },
      post: async <T>(path: string, body: object, key: string) => {
        const what = `POST ${path}`;
        const answer = await request('POST', path, { body, key });
        return answer.status === 409 ? stored<T>(what, key) : posted<T>(what, answer, false);
      },
      put: async (path, body) => {
        doneOf(`PUT ${path}`, await request('PUT', path, { body }));
      },
    };
  }

  return {
    call: async (signal, work) => {
      const ended = AbortSignal.any([signal, closing.signal]);
      ended.throwIfAborted();
      try {
        return await work(apiOf(ended));
      } catch (error) {
        ended.throwIfAborted();
        throw error;
      }
    },
    close: () => closing.abort(new Error('The provider is closed.')),
  };
}

function posted<T>(what: string, answer: Answer, isStored: boolean): Posted<T> {
  if (refusals.includes(answer.status)) return { kind: 'REFUSED', apiError: errorOf(answer) };
  return { kind: 'DONE', resource: doneOf<T>(what, answer), isStored };
}

function doneOf<T>(what: string, answer: Answer): T {
  if (answer.status < 200 || answer.status > 299) throw failure(what, answer);
  return answer.body as T;
}

function failure(what: string, { status, body }: Answer): ProviderFailure {
  const kind = status === 401 ? 'CREDENTIALS_REJECTED' : status === 429 ? 'OVERLOADED' : 'FAILED';
  const { Id } = Object(body) as ErrorBody;
  const request = typeof Id === 'string' ? `, request ${Id.slice(0, keptMax.name)}` : '';
  return new ProviderFailure(kind, `Mangopay: ${what}, status ${status}${request}`);
}

function errorOf({ status, body }: Answer): Declined {
  const { Type, Message, errors } = Object(body) as ErrorBody;
  const fields = Object.entries(errors ?? {}).map(([field, why]) => `${field}: ${why}`);
  const detail = [`status ${status}`, Type, Message, ...fields]
    .filter((part) => part !== undefined)
    .join(', ');
  return declinedFor(typeof Type === 'string' ? Type : `http_${status}`, detail);
}

/** An error by Mangopay's code and its own words for it, as much as is kept of them, with what is shown to the buyer. */
export function declinedFor(code: string, detail: string, words: string = unexplainedWords): Declined {
  return { code: code.slice(0, keptMax.name), words, detail: detail.slice(0, keptMax.reason) };
}

/** Whether a 401 is about the owner of a wallet, who has to show who they are, and not about the credentials. */
function asksForTheOwner({ headers }: Answer): boolean {
  return /redirecturl/i.test(headers.get('www-authenticate') ?? '');
}

/** Reads a body that is JSON, without secrets that it repeats; anything else is as good as none. */
async function readJson(response: Response, secrets: readonly string[]): Promise<unknown> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > answerBytesMax) throw new Error(`an answer of more than ${answerBytesMax} bytes`);
    chunks.push(chunk);
  }
  try {
    const text = Buffer.concat(chunks).toString();
    return JSON.parse(secrets.reduce((left, secret) => left.replaceAll(secret, '…'), text));
  } catch {
    return undefined;
  }
}

/** The code of what went wrong on the way, such as ECONNREFUSED, or else in words. */
function causeOf(error: unknown): string {
  const { cause, message } = Object(error);
  const { code } = Object(cause);
  return typeof code === 'string' ? `cause ${code}` : String(message);
}

/** Waits for a promise until the signal is aborted. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const giveUp = () => reject(signal.reason);
  signal.addEventListener('abort', giveUp, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
}
