import { ArtsealError } from './error.ts';
import { createSigning } from './sign.ts';

/** The version of the package, which the build puts in. */
declare const KIT_VERSION: string;

/** How to reach a service, and as whom. */
export interface ClientOptions {
  /** The address of the service, such as `https://registry.example`. */
  readonly url: string;
  /** `ak_…` */
  readonly apiKey: string;
  /** `sk_…`. It is not sent. */
  readonly apiSecret: string;
  /** The longest time of a call with all its tries, in milliseconds; 60,000 by default. */
  readonly timeoutMs?: number;
  /** The current time, Unix milliseconds; `Date.now` by default. */
  readonly nowMs?: () => number;
  /** Sends a request; the global `fetch` by default. It must not retry: every try has its own signature. */
  readonly fetch?: typeof fetch;
}

/** A call. */
export interface Call {
  readonly method: string;
  /** The path with its query. */
  readonly target: string;
  /** Sent as JSON. */
  readonly body?: unknown;
  /** By default, a call that writes gets a key of its own. */
  readonly idempotencyKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Whether the response is text instead of JSON. */
  readonly isText?: boolean;
}

/** The limits of every call. */
const limits = {
  tries: 4,
  timeoutMs: 60_000,
  responseBytes: 4 * 1024 * 1024,
  /** The pause before the second try without a Retry-After. It doubles with each try. */
  pauseMs: 250,
  /** A server that claims a larger difference is not believed: its clock would date the signatures of this client. */
  clockOffsetMs: 24 * 3_600_000,
} as const;

const retried: readonly number[] = [429, 500, 502, 503, 504];
/** Origins whose responses no network in between can change. */
const isFromServer = /^https:|^http:\/\/(localhost|127\.[0-9.]+|\[::1\])(:|$)/;
const userAgent = `artseal-typescript/${KIT_VERSION}`;

/**
 * Returns a function that signs a call, sends it, and retries it where that is safe. It resolves with the response, and
 * rejects with an `ArtsealError`, or with the reason of `signal`. Throws a TypeError if an option is not valid.
 */
export function createTransport(options: ClientOptions): (call: Call) => Promise<unknown> {
  const { apiKey, apiSecret, timeoutMs = limits.timeoutMs, nowMs = Date.now } = options;
  const origin = originOf(options.url);
  if (!/^[\x21-\x7e]+$/.test(apiKey)) throw new TypeError('apiKey must be the API key as issued, ak_….');
  if (apiSecret === '') throw new TypeError('apiSecret must be the secret as issued, sk_….');
  if (!(timeoutMs > 0 && timeoutMs <= 2 ** 31 - 1)) throw new TypeError('timeoutMs must be 1 to 2147483647.');
  const sign = createSigning(apiKey, apiSecret);
  // A browser does not call its own fetch as a method of another object.
  const send = options.fetch ?? ((url, init) => fetch(url, init));
  let clockOffsetMs = 0;

  /** Sends one try. Resolves with the status, the headers and the text of its response. */
  async function attempt(call: Call, body: string | undefined, key: string | undefined, signal: AbortSignal) {
    const bytes = new TextEncoder().encode(body);
    const timestampS = Math.floor((nowMs() + clockOffsetMs) / 1000);
    const headers = {
      ...(await sign({ ...call, body: bytes, timestampS })),
      [body === undefined ? 'Accept' : 'Content-Type']: 'application/json',
      'User-Agent': userAgent,
      ...(key === undefined ? {} : { 'Idempotency-Key': key }),
    };
    const { method, target } = call;
    const init = { method, headers, body: body === undefined ? null : bytes, signal, redirect: 'manual' };
    const response = await send(origin + target, init as RequestInit);
    return { response, text: await readText(response) };
  }

  /**
   * Takes the clock of the server from its response. Returns false if that is not possible. Over plain HTTP, a network that
   * sets the clock could send a signed request much later.
   */
  function takeClock(response: Response): boolean {
    if (!isFromServer.test(origin)) return false;
    const offsetMs = Date.parse(response.headers.get('Date') ?? '') - nowMs();
    if (!(Math.abs(offsetMs) <= limits.clockOffsetMs)) return false;
    clockOffsetMs = offsetMs;
    return true;
  }

  return async (call) => {
    checkTarget(origin, call.target);
    if (call.idempotencyKey !== undefined && !/^[\x21-\x7e]{1,255}$/.test(call.idempotencyKey))
      throw new TypeError('idempotencyKey must be 1 to 255 visible ASCII characters.');
    const body = call.body === undefined ? undefined : JSON.stringify(call.body);
    const key = call.idempotencyKey ?? (call.method === 'GET' ? undefined : crypto.randomUUID());
    const endsAt = performance.now() + timeoutMs;
    // Ends a response that is not read to its end.
    const end = new AbortController();
    const signals = [AbortSignal.timeout(timeoutMs), end.signal, ...(call.signal ? [call.signal] : [])];
    const signal = AbortSignal.any(signals);
    let isClockTaken = false;
    for (let tries = 1; ; tries += 1) {
      let error: ArtsealError;
      let pauseMs = limits.pauseMs * 2 ** (tries - 1) * (0.5 + Math.random() / 2);
      let isRetried = true;
      try {
        const { response, text } = await attempt(call, body, key, signal);
        if (response.ok) return call.isText === true ? text : parse(response, text);
        error = errorOf(origin, response, text);
        isRetried = retried.includes(response.status) || error.code === 'IDEMPOTENCY_IN_PROGRESS';
        if (error.code === 'TIMESTAMP_EXPIRED' && !isClockTaken) {
          isClockTaken = true;
          isRetried = takeClock(response);
          pauseMs = 0;
        } else {
          pauseMs = retryAfterMs(response) ?? pauseMs;
        }
      } catch (cause) {
        call.signal?.throwIfAborted();
        if (cause instanceof ArtsealError) {
          end.abort();
          throw cause;
        }
        const message = 'The service did not respond; the result of a write is unknown.';
        error = new ArtsealError(message, { code: 'NO_RESPONSE' }, { cause });
      }
      if (!isRetried || tries === limits.tries || performance.now() + pauseMs >= endsAt) throw error;
      await pause(pauseMs, call.signal);
    }
  };
}

function originOf(url: string): string {
  const { protocol, origin, pathname, search, hash, username } = new URL(url);
  if (/^https?:$/.test(protocol) && pathname + search + hash + username === '/') return origin;
  throw new TypeError('url must be http:// or https:// and a host, without a path, a query and a user.');
}

/** Throws unless the target is sent as it is signed: a client resolves `..` before it sends. */
function checkTarget(origin: string, target: string): void {
  const { origin: other, pathname, search } = new URL(origin + target);
  if (other !== origin || pathname + search !== target || /\/(\/|$)/.test(pathname)) {
    throw new TypeError(`${target} has a part that is empty, . or ..`);
  }
}

/** Reads a body of bounded length. */
async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (;;) {
    const { value } = (await reader?.read()) ?? {};
    if (value === undefined) return new Blob(parts).text();
    parts.push(value);
    length += value.length;
    if (length <= limits.responseBytes) continue;
    throw badResponse(response, `The response is longer than ${limits.responseBytes} bytes.`);
  }
}

function parse(response: Response, text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw badResponse(response, 'The response is not JSON.');
  return value;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function errorOf(origin: string, response: Response, text: string): ArtsealError {
  const { code, message, requestId } = Object(parseJson(text));
  if (typeof code !== 'string' || typeof message !== 'string')
    return badResponse(response, `HTTP ${response.status} is not from Artseal.`);
  const target = /<(\/[^/<>][^<>]*)>; *rel="?help"?/.exec(response.headers.get('Link') ?? '')?.[1];
  return new ArtsealError(message, {
    code,
    status: response.status,
    requestId: typeof requestId === 'string' ? requestId : requestIdOf(response),
    help: target === undefined ? undefined : new URL(target, origin).href,
  });
}

const badResponse = (response: Response, message: string): ArtsealError =>
  new ArtsealError(message, {
    code: 'BAD_RESPONSE',
    status: response.status,
    requestId: requestIdOf(response),
  });

const requestIdOf = ({ headers }: Response): string | undefined => headers.get('X-Request-Id') ?? undefined;

function retryAfterMs({ headers }: Response): number | undefined {
  const value = headers.get('Retry-After') ?? '';
  return /^[0-9]{1,9}$/.test(value) ? Number(value) * 1000 : undefined;
}

/** Resolves after a pause. Rejects with the reason of `signal`. */
function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const abort = () => reject(signal?.reason);
  signal?.addEventListener('abort', abort, { once: true });
  const timer = setTimeout(resolve, ms);
  return promise.finally(() => {
    clearTimeout(timer);
    signal?.removeEventListener('abort', abort);
  });
}
