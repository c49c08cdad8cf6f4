import { AsyncLocalStorage } from 'node:async_hooks';
import Stripe from 'stripe';
import type { Declined } from '../../domain/payment.ts';
import { type FailureKind, ProviderFailure } from '../provider.ts';
import { apiVersion } from './api-version.ts';
import { declinedFor, type StripeReason } from './declined.ts';

/** What the provider at Stripe is set up with. */
export interface StripeSettings {
  /** A secret (sk_) or restricted (rk_) key. */
  readonly apiKey: string;
  /** Signs the notifications of one webhook endpoint. */
  readonly webhookSecret: string;
  /** Where a buyer comes back to who had to confirm a payment; undefined where none can be asked to. */
  readonly returnUrl: string | undefined;
  /** Origin of the API: that of Stripe, or of a stand-in. */
  readonly url: string;
}

/** The library of Stripe, as this project uses it. */
export interface StripeClient {
  readonly stripe: Stripe;
  /**
   * Does work that calls Stripe; its requests end with the signal. Rejects with an Error that can be logged:
   * it has neither a secret nor what Stripe knows of a buyer.
   */
  call<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** Ends all calls, now and from now on. */
  close(): void;
}

/** How long one request may take, in milliseconds, should the signal of its call allow for more. */
const requestTimeoutMs = 20_000;

/**
 * Opens the library.
 *
 * The library takes no signal. Its own client of HTTP, besides, sends a request again whose connection was
 * closed, even with no retries allowed. So the requests go through fetch, which does neither: the signal of a
 * call is found by the asynchronous context that the request is made in.
 */
export function createStripeClient({ apiKey, url }: Pick<StripeSettings, 'apiKey' | 'url'>): StripeClient {
  const signals = new AsyncLocalStorage<AbortSignal>();
  const closing = new AbortController();
  const { protocol, hostname, port } = new URL(url);
  const stripe = new Stripe(apiKey, {
    httpClient: Stripe.createFetchHttpClient((input, init) =>
      // A redirect would take the request, and the key in it, to another place.
      fetch(input, { ...init, redirect: 'error', signal: either(signals.getStore(), init?.signal) }).then(
        withoutNotice,
      ),
    ),
    apiVersion,
    host: hostname,
    port: port || (protocol === 'http:' ? '80' : '443'),
    protocol: protocol === 'http:' ? 'http' : 'https',
    timeout: requestTimeoutMs,
    // Whoever gave the instruction asks and tries again.
    maxNetworkRetries: 0,
    telemetry: false,
  });

  return {
    stripe,
    call: async (signal, work) => {
      const ended = AbortSignal.any([signal, closing.signal]);
      ended.throwIfAborted();
      try {
        return await signals.run(ended, work);
      } catch (error) {
        ended.throwIfAborted();
        throw presentable(error);
      }
    },
    close: () => closing.abort(new Error('The provider is closed.')),
  };
}

/** An answer without the notice for developers in it, which the library would write to standard error. */
function withoutNotice(answer: Response): Response {
  const name = 'stripe-notice';
  if (!answer.headers.has(name)) return answer;
  const headers = new Headers(answer.headers);
  headers.delete(name);
  return new Response(answer.body, { status: answer.status, statusText: answer.statusText, headers });
}

function either(...signals: (AbortSignal | null | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal instanceof AbortSignal));
}

/** The code of an account that is none, or that does not let the platform act for it (any more). */
const noAccess = 'account_invalid';

/**
 * Whether an error is Stripe's error of what was asked, of which it has done nothing more than the error
 * tells. Any other error leaves that open.
 */
export function isRejectedByStripe(error: unknown): error is InstanceType<typeof Stripe.errors.StripeError> {
  const { StripeCardError, StripeInvalidRequestError } = Stripe.errors;
  return (
    error instanceof StripeCardError || error instanceof StripeInvalidRequestError || isWithoutAccess(error)
  );
}

function isWithoutAccess(error: unknown): boolean {
  return error instanceof Stripe.errors.StripePermissionError && error.code === noAccess;
}

/** Why Stripe refused what was asked; undefined of an error that is no error. */
export function reasonOf(error: unknown): Declined | undefined {
  return isRejectedByStripe(error) ? declinedFor(error as StripeReason) : undefined;
}

/**
 * Why Stripe refused the credentials themselves, in words for the operator: a key that is unknown, revoked or expired, or
 * that lacks a permission. Undefined of any other error.
 */
export function credentialsError(error: unknown): string | undefined {
  if (error instanceof Stripe.errors.StripeAuthenticationError)
    return 'Stripe does not know the API key, or it was revoked or has expired (401)';
  if (error instanceof Stripe.errors.StripePermissionError)
    return 'the API key has no permission to use PaymentIntents (403)';
  return undefined;
}

/** Whether an error says that the idempotency key has been used for something else. */
export function isKeyInOtherUse(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeIdempotencyError;
}

/**
 * Whether Stripe gave a saved answer: that of the first request under the same idempotency key, which every
 * later one gets as well, for a day at least.
 */
export function isSavedAnswer(headers: unknown): boolean {
  const name = 'idempotent-replayed';
  // The library hands out the headers of an answer as fetch does, those of an error as an object.
  const value = headers instanceof Headers ? headers.get(name) : Object(headers)[name];
  return value === 'true';
}

/** An error in words of our own: the library's carry the card, the buyer and a client secret. */
function presentable(error: unknown): unknown {
  if (!(error instanceof Stripe.errors.StripeError)) return error;
  const { type, code, statusCode, requestId } = error;
  const facts = { code, status: statusCode, request: requestId, cause: networkCause(error.detail) };
  const known = Object.entries(facts).filter(([, value]) => value !== undefined);
  const words = [`Stripe: ${type}`, ...known.map(([name, value]) => `${name} ${value}`)].join(', ');
  return new ProviderFailure(failureKind(error), words);
}

function failureKind(error: InstanceType<typeof Stripe.errors.StripeError>): FailureKind {
  const { errors } = Stripe;
  if (error instanceof errors.StripeConnectionError) return 'UNREACHABLE';
  // Something else is at work on the same object: Stripe has room for other requests.
  if (error.code === 'lock_timeout' || isWithoutAccess(error)) return 'FAILED';
  if (error instanceof errors.StripeRateLimitError) return 'OVERLOADED';
  const isRejected =
    error instanceof errors.StripeAuthenticationError || error instanceof errors.StripePermissionError;
  return isRejected ? 'CREDENTIALS_REJECTED' : 'FAILED';
}

/** The code of what went wrong on the way, such as ECONNREFUSED. */
function networkCause(detail: unknown): string | undefined {
  for (const error of [Object(detail).cause, Object(detail).exception, detail]) {
    const { code } = Object(error);
    if (typeof code === 'string') return code;
  }
  return undefined;
}
