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

/** Authorised requests to Mangopay. */
export interface MangopayHttp {
  /** Sends a request. `path` follows the ClientId. Rejects with a ProviderFailure if there is no response. */
  request(signal: AbortSignal, method: string, path: string, content?: Content): Promise<Answer>;
}

/** What a request may have besides its path. */
export interface Content {
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** The idempotency key. */
  readonly key?: string;
}

/** A response. */
export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  /** Parsed JSON; undefined if it is none. */
  readonly body: unknown;
}

/** Mangopay does not show a wallet before its owner has authenticated. */
export class OwnerHasToAuthenticate extends ProviderFailure {
  constructor(what: string) {
    const why = 'is the user of ARTSEAL_MANGOPAY_ESCROW_USER of the category PLATFORM?';
    super('FAILED', `Mangopay: ${what}, the owner of the wallet has to authenticate first: ${why}`);
  }
}

/** The timeout of one request in milliseconds, if the signal of the call allows more. */
const requestTimeoutMs = 20_000;
/** How long before its end a token is no longer used, in milliseconds. Mangopay recommends half of that. */
const tokenMarginMs = 60_000;
/** The largest response in bytes. A page of a hundred transactions has some 80 kB. */
const answerBytesMax = 1_048_576;
/** Statuses that reject a request: bad request, forbidden, not found, unprocessable. */
export const rejections: readonly number[] = [400, 403, 404, 422];
/** How much of a request id is kept, in characters. */
const requestIdMax = 64;
const version = 'v2.01';

interface Token {
  readonly value: string;
  readonly untilMs: number;
}

/** `closing` ends the requests for tokens, which calls share. */
export function createHttp(
  { clientId, apiKey, url }: Pick<MangopaySettings, 'clientId' | 'apiKey' | 'url'>,
  nowMs: () => number,
  closing: AbortSignal,
): MangopayHttp {
  let token: Token | undefined;
  let requested: Promise<Token> | undefined;

  async function send(what: string, target: URL, init: RequestInit, signal: AbortSignal): Promise<Answer> {
    const ends = AbortSignal.any([signal, AbortSignal.timeout(requestTimeoutMs)]);
    try {
      // A redirect would send the request with its credentials to another server.
      const response = await fetch(target, { ...init, redirect: 'error', signal: ends });
      const secrets = token === undefined ? [apiKey] : [apiKey, token.value];
      return { status: response.status, headers: response.headers, body: await readJson(response, secrets) };
    } catch (error) {
      signal.throwIfAborted();
      throw new ProviderFailure('UNREACHABLE', `Mangopay: ${what}, ${causeOf(error)}`);
    }
  }

  async function requestToken(): Promise<Token> {
    const basic = Buffer.from(`${clientId}:${apiKey}`).toString('base64');
    const init = {
      method: 'POST',
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials',
    };
    const answer = await send('token', new URL(`${url}/${version}/oauth/token`), init, closing);
    const { access_token: value, expires_in: seconds } = Object(answer.body);
    if (rejections.includes(answer.status) || answer.status === 401) {
      throw new ProviderFailure('CREDENTIALS_REJECTED', 'Mangopay: it refuses the ClientId and API key');
    }
    if (answer.status !== 200 || typeof value !== 'string' || typeof seconds !== 'number') {
      throw failure('token', answer);
    }
    return { value, untilMs: nowMs() + seconds * 1000 - tokenMarginMs };
  }

  /** Returns the current token. Concurrent calls share one request for it. */
  async function bearer(signal: AbortSignal): Promise<string> {
    if (token !== undefined && token.untilMs > nowMs()) return token.value;
    requested ??= requestToken().finally(() => {
      requested = undefined;
    });
    token = await unlessAborted(requested, signal);
    return token.value;
  }

  return {
    request: async (signal, method, path, { query, body, key } = {}) => {
      const what = `${method} ${path}`;
      const target = new URL(`${url}/${version}/${clientId}${path}`);
      for (const [name, value] of Object.entries(query ?? {})) target.searchParams.set(name, value);
      const headers = {
        authorization: `Bearer ${await bearer(signal)}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      };
      const init = { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
      const answer = await send(what, target, init, signal);
      if (answer.status !== 401) return answer;
      if (isAboutOwner(answer)) throw new OwnerHasToAuthenticate(what);
      // The token may have been withdrawn early: the next request gets another.
      token = undefined;
      return answer;
    },
  };
}

/** Whether a 401 is about the owner of a wallet, who has to authenticate, and not about the credentials. */
function isAboutOwner({ headers }: Answer): boolean {
  return /redirecturl/i.test(headers.get('www-authenticate') ?? '');
}

/** Returns the error of a response that is neither a success nor a rejection. */
export function failure(what: string, { status, body }: Answer): ProviderFailure {
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

/** Waits for a promise until the signal is aborted. */
async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const abort = () => reject(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener('abort', abort);
  }
}
