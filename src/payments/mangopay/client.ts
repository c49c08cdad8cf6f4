import { type Declined, unexplainedWords } from '../../domain/payment.ts';
import { ProviderFailure } from '../provider.ts';

/** The settings of the provider at Mangopay. */
export interface MangopaySettings {
  readonly clientId: string;
  readonly apiKey: string;
  /** The user who owns the wallets of orders. */
  readonly escrowUser: string;
  /** The secret in the URL of every hook. */
  readonly hookSecret: string;
  /** Origin of the API: Mangopay or a stand-in. */
  readonly url: string;
}

/** Mangopay's API over HTTP. */
export type MangopayClient = ReturnType<typeof createMangopayClient>;

/** See `createApi`. */
export type MangopayApi = ReturnType<typeof createApi>;

/** The result of a POST under its key. */
export type Posted<T> =
  /** The created resource. `isStored` if an earlier request created it; the resource is as it was then. */
  | { readonly kind: 'DONE'; readonly resource: T; readonly isStored: boolean }
  /** Rejected, and the key is used up: nothing was or will be done under it. */
  | { readonly kind: 'REJECTED'; readonly declined: Declined }
  /** An earlier request ended in an error at Mangopay, and the key is used up: a look-up has to find what was done. */
  | { readonly kind: 'LOST' };

/** Mangopay does not show a wallet before its owner has authenticated. */
export class OwnerHasToAuthenticate extends ProviderFailure {
  constructor(what: string) {
    const why = 'is the user of ARTSEAL_MANGOPAY_ESCROW_USER of the category PLATFORM?';
    super('FAILED', `Mangopay: ${what}, the owner of the wallet has to authenticate first: ${why}`);
  }
}

/** What a request may have besides its path. */
interface Content {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The idempotency key. */
  readonly key?: string;
}

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; undefined if it is none. */
  readonly body: unknown;
}

type Request = (signal: AbortSignal, method: string, path: string, content?: Content) => Promise<Answer>;

/** How long before its end a token is no longer used, in milliseconds. Mangopay recommends half of that. */
const tokenMarginMs = 60_000;
/** The largest response in bytes. A page of a hundred transactions has some 80 kB. */
const answerBytesMax = 1_048_576;
/** Statuses that reject a request: bad request, forbidden, not found, unprocessable. */
const rejections: readonly number[] = [400, 403, 404, 422];
/** How much of a request id is kept, in characters. */
const requestIdMax = 64;
const version = 'v2.01';

/** How much of Mangopay's text is kept, in characters: a reason, and a code. */
const keptMax = { reason: 500, code: 64 } as const;

/**
 * Returns how to send an authorised request; `path` follows the ClientId. It rejects with a ProviderFailure if there is no
 * response.
 */
function createRequests({ clientId, apiKey, url }: MangopaySettings, nowMs: () => number): Request {
  let token: { readonly value: string; readonly untilMs: number } | undefined;

  async function send(
    what: string,
    path: string,
    init: RequestInit,
    secret: string,
    signal: AbortSignal,
  ): Promise<Answer> {
    try {
      // A redirect would send the request with its credentials to another server.
      const response = await fetch(`${url}/${version}${path}`, { ...init, redirect: 'error', signal });
      const body = await readJson(response, [apiKey, secret]);
      return { status: response.status, headers: response.headers, body };
    } catch (error) {
      signal.throwIfAborted();
      throw new ProviderFailure('UNREACHABLE', `Mangopay: ${what}, ${causeOf(error)}`);
    }
  }

  async function bearer(signal: AbortSignal): Promise<string> {
    if (token !== undefined && token.untilMs > nowMs()) return token.value;
    const basic = Buffer.from(`${clientId}:${apiKey}`).toString('base64');
    const init = {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials',
    };
    const answer = await send('token', '/oauth/token', init, basic, signal);
    const { access_token: value, expires_in: seconds } = Object(answer.body);
    if (rejections.includes(answer.status) || answer.status === 401) {
      throw new ProviderFailure('CREDENTIALS_REJECTED', 'Mangopay: it rejects the ClientId and API key');
    }
    if (answer.status !== 200 || typeof value !== 'string' || typeof seconds !== 'number') {
      throw failure('token', answer);
    }
    token = { value, untilMs: nowMs() + seconds * 1000 - tokenMarginMs };
    return value;
  }

  return async (signal, method, path, { query, body, key } = {}) => {
    const what = `${method} ${path}`;
    const target = `/${clientId}${path}${query === undefined ? '' : `?${new URLSearchParams(query)}`}`;
    const secret = await bearer(signal);
    const headers = {
      authorization: `Bearer ${secret}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...(key === undefined ? {} : { 'idempotency-key': key }),
    };
    const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const answer = await send(what, target, init, secret, signal);
    if (answer.status !== 401) return answer;
    if (isAboutOwner(answer)) throw new OwnerHasToAuthenticate(what);
    // The token may have been withdrawn early: the next request gets another.
    token = undefined;
    return answer;
  };
}

/** Whether a 401 is about the owner of a wallet, who has to authenticate, and not about the credentials. */
function isAboutOwner({ headers }: Answer): boolean {
  return /redirecturl/i.test(headers.get('www-authenticate') ?? '');
}

function failure(what: string, { status, body }: Answer): ProviderFailure {
  const kind = status === 401 ? 'CREDENTIALS_REJECTED' : status === 429 ? 'OVERLOADED' : 'FAILED';
  const { Id } = Object(body);
  const request = typeof Id === 'string' ? `, request ${Id.slice(0, requestIdMax)}` : '';
  return new ProviderFailure(kind, `Mangopay: ${what}, status ${status}${request}`);
}

/** Reads a JSON body without the secrets that it repeats; undefined if it is not JSON. */
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

/** Returns the code of a network error, such as ECONNREFUSED, or else its message. */
function causeOf(error: unknown): string {
  const { cause, message } = Object(error);
  const { code } = Object(cause);
  return typeof code === 'string' ? `cause ${code}` : String(message);
}

/**
 * Mangopay's API within one call. Paths follow the ClientId. Without a definite response (401, 429, 5xx, none) a call rejects
 * with a ProviderFailure; nothing is sent twice.
 */
function createApi(request: Request, signal: AbortSignal) {
  const find = async <T>(
    path: string,
    query: Readonly<Record<string, string>> = {},
  ): Promise<T | undefined> => {
    const answer = await request(signal, 'GET', path, { query });
    return answer.status === 404 ? undefined : doneOf<T>(`GET ${path}`, answer);
  };

  /** Reads the response to the first request under a key. */
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
    /** Reads a resource; undefined if it does not exist (404). */
    find,
    /** Reads a resource that must exist. */
    get: async <T>(path: string, query?: Readonly<Record<string, string>>): Promise<T> => {
      const found = await find<T>(path, query);
      if (found === undefined) throw new ProviderFailure('FAILED', `Mangopay: GET ${path}, status 404`);
      return found;
    },
    /**
     * Creates a resource under an idempotency key. Mangopay responds to a key once, and with 409 for 24 hours after it; then
     * this reads the first response.
     */
    post: async <T>(path: string, body: object, key: string): Promise<Posted<T>> => {
      const what = `POST ${path}`;
      const answer = await request(signal, 'POST', path, { body, key });
      return answer.status === 409 ? stored<T>(what, key) : posted<T>(what, answer, false);
    },
    put: async (path: string, body: object): Promise<void> => {
      doneOf(`PUT ${path}`, await request(signal, 'PUT', path, { body }));
    },
  };
}

/**
 * Opens a client. It replaces Mangopay's mangopay4-nodejs-sdk, which accepts no signal, follows redirects and, if a connection
 * is refused or breaks, throws where nobody can catch it, so that the process ends. Tests compare both.
 */
export function createMangopayClient(settings: MangopaySettings, nowMs: () => number) {
  const closing = new AbortController();
  const request = createRequests(settings, nowMs);

  return {
    /**
     * Runs work that calls Mangopay; the signal aborts its requests. Rejects with an Error that can be logged: it contains no
     * secret.
     */
    call: <T>(signal: AbortSignal, work: (api: MangopayApi) => Promise<T>): Promise<T> =>
      work(createApi(request, AbortSignal.any([signal, closing.signal]))),
    /** Aborts all calls; later ones reject. */
    close: () => closing.abort(new Error('The provider is closed.')),
  };
}

function posted<T>(what: string, answer: Answer, isStored: boolean): Posted<T> {
  if (rejections.includes(answer.status)) return { kind: 'REJECTED', declined: declinedOf(answer) };
  return { kind: 'DONE', resource: doneOf<T>(what, answer), isStored };
}

function doneOf<T>(what: string, answer: Answer): T {
  if (answer.status < 200 || answer.status > 299) throw failure(what, answer);
  return answer.body as T;
}

function declinedOf({ status, body }: Answer): Declined {
  const { Type, Message, errors } = Object(body);
  const fields = Object.entries(errors ?? {}).map(([field, why]) => `${field}: ${why}`);
  const detail = [`status ${status}`, Type, Message, ...fields]
    .filter((part) => part !== undefined)
    .join(', ');
  return declinedFor(typeof Type === 'string' ? Type : `http_${status}`, detail);
}

/** Returns an error by Mangopay's code and text, shortened, with the words for the buyer. */
export function declinedFor(code: string, detail: string, words: string = unexplainedWords): Declined {
  return { code: code.slice(0, keptMax.code), words, detail: detail.slice(0, keptMax.reason) };
}
