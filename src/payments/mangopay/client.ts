import { type Declined, unexplainedWords } from '../../domain/payment.ts';
import { ProviderFailure } from '../provider.ts';
import { type Answer, createHttp, failure, type MangopaySettings, rejections } from './http.ts';

/** Mangopay's API over HTTP. */
export interface MangopayClient {
  /**
   * Runs work that calls Mangopay; the signal aborts its requests. Rejects with an Error that can be logged: it contains no
   * secret.
   */
  call<T>(signal: AbortSignal, work: (api: MangopayApi) => Promise<T>): Promise<T>;
  /** Aborts all calls; later ones reject. */
  close(): void;
}

/**
 * Mangopay's API within one call. Paths follow the ClientId. Without a definite response (401, 429, 5xx, none) a call rejects
 * with a ProviderFailure; nothing is sent twice.
 */
export interface MangopayApi {
  /** Reads a resource; undefined if it does not exist (404). */
  find<T>(path: string, query?: Readonly<Record<string, string>>): Promise<T | undefined>;
  /** Reads a resource that must exist. */
  get<T>(path: string, query?: Readonly<Record<string, string>>): Promise<T>;
  /**
   * Creates a resource under an idempotency key. Mangopay responds to a key once, and with 409 for 24 hours after it; then
   * this reads the first response.
   */
  post<T>(path: string, body: object, key: string): Promise<Posted<T>>;
  put(path: string, body: object): Promise<void>;
}

/** The result of a POST under its key. */
export type Posted<T> =
  /** The created resource. `isStored` if an earlier request created it; the resource is as it was then. */
  | { readonly kind: 'DONE'; readonly resource: T; readonly isStored: boolean }
  /** Rejected, and the key is used up: nothing was or will be done under it. */
  | { readonly kind: 'REJECTED'; readonly declined: Declined }
  /** An earlier request ended in an error at Mangopay, and the key is used up: a look-up has to find what was done. */
  | { readonly kind: 'LOST' };

/** How much of Mangopay's text is kept, in characters: a reason, and a code. */
const keptMax = { reason: 500, code: 64 } as const;

/** The body of an error. */
interface ErrorBody {
  readonly Message?: unknown;
  readonly Type?: unknown;
  readonly errors?: Readonly<Record<string, unknown>> | null;
}

/**
 * Opens a client. It replaces Mangopay's mangopay4-nodejs-sdk, which accepts no signal, follows redirects and, if a connection
 * is refused or breaks, throws where nobody can catch it, so that the process ends. Tests compare both.
 */
export function createMangopayClient(
  settings: Pick<MangopaySettings, 'clientId' | 'apiKey' | 'url'>,
  nowMs: () => number,
): MangopayClient {
  const closing = new AbortController();
  const http = createHttp(settings, nowMs, closing.signal);

  function apiOf(signal: AbortSignal): MangopayApi {
    const find = async <T>(
      path: string,
      query: Readonly<Record<string, string>> = {},
    ): Promise<T | undefined> => {
      const answer = await http.request(signal, 'GET', path, { query });
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
      find,
      get: async <T>(path: string, query?: Readonly<Record<string, string>>) => {
        const found = await find<T>(path, query);
        if (found === undefined) throw new ProviderFailure('FAILED', `Mangopay: GET ${path}, status 404`);
        return found;
      },
      post: async <T>(path: string, body: object, key: string) => {
        const what = `POST ${path}`;
        const answer = await http.request(signal, 'POST', path, { body, key });
        return answer.status === 409 ? stored<T>(what, key) : posted<T>(what, answer, false);
      },
      put: async (path, body) => {
        doneOf(`PUT ${path}`, await http.request(signal, 'PUT', path, { body }));
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
  if (rejections.includes(answer.status)) return { kind: 'REJECTED', declined: declinedOf(answer) };
  return { kind: 'DONE', resource: doneOf<T>(what, answer), isStored };
}

function doneOf<T>(what: string, answer: Answer): T {
  if (answer.status < 200 || answer.status > 299) throw failure(what, answer);
  return answer.body as T;
}

function declinedOf({ status, body }: Answer): Declined {
  const { Type, Message, errors } = Object(body) as ErrorBody;
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
