import { AsyncLocalStorage } from 'node:async_hooks';
import Stripe from 'stripe';
import type { Declined } from '../../domain/payment.ts';
import { type FailureKind, ProviderFailure } from '../provider.ts';
import { declinedFor, type StripeReason } from './declined.ts';

/** The settings of the provider at Stripe. */
export interface StripeSettings {
  /** A secret (sk_) or restricted (rk_) key. */
  readonly apiKey: string;
  /** The signing secret of the webhook endpoint. */
  readonly webhookSecret: string;
  /** The page to which a buyer returns after confirming a payment; undefined if buyers cannot be asked to confirm. */
  readonly returnUrl: string | undefined;
  /** Origin of the API: Stripe or a stand-in. */
  readonly url: string;
}

/** Stripe's library with cancellation and errors that can be logged. */
export type StripeClient = ReturnType<typeof createStripeClient>;

/** The version of Stripe's API that each request names and notifications must have. The library is made for it. */
export const apiVersion = '2026-10-28.endive';

/**
 * Opens the library. It accepts no signal, and its own HTTP client resends a request after its connection was closed, even
 * if retries are off. So the requests use fetch, and the signal of a call comes from the asynchronous context.
 */
export function createStripeClient({ apiKey, url }: StripeSettings) {
  const signals = new AsyncLocalStorage<AbortSignal>();
  const closing = new AbortController();
  const { protocol, hostname, port } = new URL(url);
  const stripe = new Stripe(apiKey, {
    httpClient: Stripe.createFetchHttpClient((input, init) =>
      // A redirect would send the request with its key to another server.
      fetch(input, { ...init, redirect: 'error', signal: either(signals.getStore(), init?.signal) }).then(
        withoutNotice,
      ),
    ),
    apiVersion,
    host: hostname,
    port: port || (protocol === 'http:' ? '80' : '443'),
    protocol: protocol === 'http:' ? 'http' : 'https',
    // Reconciliation retries.
    maxNetworkRetries: 0,
    telemetry: false,
  });

  return {
    stripe,
    /**
     * Runs work that calls Stripe; the signal aborts its requests. Rejects with an Error that can be logged: it contains
     * neither a secret nor data of a buyer.
     */
    call: async <T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> => {
      const ended = AbortSignal.any([signal, closing.signal]);
      try {
        return await signals.run(ended, work);
      } catch (error) {
        ended.throwIfAborted();
        throw presentable(error);
      }
    },
    /** Aborts all calls; later ones reject. */
    close: () => closing.abort(new Error('The provider is closed.')),
  };
}

/** Removes the notice for developers, which the library would write to standard error. */
function withoutNotice(response: Response): Response {
  const name = 'stripe-notice';
  if (!response.headers.has(name)) return response;
  const headers = new Headers(response.headers);
  headers.delete(name);
  const { status, statusText } = response;
  return new Response(response.body, { status, statusText, headers });
}

function either(...signals: (AbortSignal | null | undefined)[]): AbortSignal {
  return AbortSignal.any(signals.filter((signal) => signal instanceof AbortSignal));
}

/** The code if an account does not exist or does not let the platform act for it. */
const noAccess = 'account_invalid';

/**
 * Returns whether Stripe rejected a request and did no more than the error says. Any other error leaves open what was done.
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

/** Returns why Stripe rejected a request; undefined for any other error. */
export function reasonOf(error: unknown): Declined | undefined {
  return isRejectedByStripe(error) ? declinedFor(error as StripeReason) : undefined;
}

/**
 * Returns for the operator why Stripe rejected the credentials: the key is unknown, revoked or expired, or lacks a
 * permission. Undefined for any other error.
 */
export function credentialsError(error: unknown): string | undefined {
  if (error instanceof Stripe.errors.StripeAuthenticationError)
    return 'Stripe does not know the API key, or it was revoked or has expired (401)';
  if (error instanceof Stripe.errors.StripePermissionError)
    return 'the API key has no permission to use PaymentIntents (403)';
  return undefined;
}

/** Returns whether the idempotency key was used for another request. */
export function isKeyInOtherUse(error: unknown): boolean {
  return error instanceof Stripe.errors.StripeIdempotencyError;
}

/**
 * Returns whether Stripe repeated the response of the first request under the idempotency key. Each later request gets it
 * too, for at least a day.
 */
export function isSavedResponse(headers: unknown): boolean {
  const name = 'idempotent-replayed';
  // The library returns the headers of a response as fetch does, those of an error as an object.
  const value = headers instanceof Headers ? headers.get(name) : Object(headers)[name];
  return value === 'true';
}

/** Returns an error that can be logged: those of the library contain the card, the buyer and a client secret. */
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
  // Another request works on the same object; Stripe still accepts requests.
  if (error.code === 'lock_timeout' || isWithoutAccess(error)) return 'FAILED';
  if (error instanceof errors.StripeRateLimitError) return 'OVERLOADED';
  const isRejected =
    error instanceof errors.StripeAuthenticationError || error instanceof errors.StripePermissionError;
  return isRejected ? 'CREDENTIALS_REJECTED' : 'FAILED';
}

/** Returns the code of a network error, such as ECONNREFUSED. */
function networkCause(detail: unknown): string | undefined {
  for (const error of [Object(detail).cause, Object(detail).exception, detail]) {
    const { code } = Object(error);
    if (typeof code === 'string') return code;
  }
  return undefined;
}
