import { hash } from 'node:crypto';
import { type DescMethodUnary, toBinary } from '@bufbuild/protobuf';
import type { Calendar } from '../domain/calendar.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError, toApiError } from '../domain/reason.ts';
import { apiErrorData, errorOf } from '../domain/violation.ts';
import { takeCell, toleranceMs } from '../lib/rates.ts';
import {
  type Admission,
  type AdmissionFault,
  type Command,
  type CommandResult,
  type Execute,
  type Executed,
  type IdempotencyClaim,
  type Kind,
  nonceRetentionS,
  type Result,
  type Store,
  type StoreRequest,
} from '../store/store.ts';
import { operationName, type PlatformPrincipal, type Reading } from './operation.ts';
import { type MergeRates, shareRates } from './shared-rates.ts';

/** Whether a call is within its caller's rate, and how much of the burst is left. */
export interface RateDecision {
  /** The allowed rate. The burst has the same size. */
  readonly callsPerSecond: number;
  readonly allowed: boolean;
  /** Further calls that are allowed now. */
  readonly remaining: number;
  /** Whole seconds until the full burst is available again, at least 1. */
  readonly resetS: number;
  /** Whole seconds until a call is allowed, at least 1; 0 if this one is allowed. */
  readonly retryAfterS: number;
}

/**
 * Limits the rate of callers: each may send a burst of N calls and then one every 1/N s. The returned function takes one call of a
 * caller; a rejected call uses nothing up. With `merge`, a call at one instance counts at all.
 */
export function createRateLimit(clock: Pick<Clock, 'monotonicMs' | 'after'>, merge?: MergeRates) {
  const arrivals = new Map<number, number>();
  const share = merge && shareRates(clock, arrivals, merge);
  return (callerId: number, callsPerSecond: number): RateDecision => {
    const now = clock.monotonicMs();
    const intervalMs = 1000 / callsPerSecond;
    const burstMs = intervalMs * callsPerSecond;
    const rate = { burst: callsPerSecond, everyMs: intervalMs };
    const { allowed, arrivalMs: arrival, excessMs } = takeCell(arrivals.get(callerId), now, rate);
    arrivals.set(callerId, arrival);
    if (allowed) share?.(callerId, intervalMs, now);
    return {
      callsPerSecond,
      allowed,
      remaining: Math.max(0, Math.floor((burstMs - (arrival - now) + toleranceMs) / intervalMs)),
      resetS: Math.max(1, Math.ceil((arrival - now) / 1000)),
      retryAfterS: allowed ? 0 : Math.max(1, Math.ceil(excessMs / 1000)),
    };
  };
}

/** The monthly quota of a caller and what is left of it. */
export interface QuotaStatus {
  /** YYYY-MM of the business time zone. */
  readonly month: string;
  /** Length of the month in seconds. */
  readonly monthS: number;
  /** Calls a month; undefined for unlimited. */
  readonly limit: number | undefined;
  /** Calls left in the month. */
  readonly remaining: number;
  /** Whole seconds until the month ends, at least 1. */
  readonly resetS: number;
}

/** The rate and quota of a caller after a call. */
export interface Limits {
  readonly rate: RateDecision;
  readonly quota: QuotaStatus;
}

/** The quota of a platform in the month of `nowMs`, after `calls` counted calls. */
export function quotaStatus(
  { monthlyQuota: limit }: PlatformPrincipal,
  calendar: Calendar,
  nowMs: number,
  calls: number,
): QuotaStatus {
  const { name: month, endsAtMs, lengthS: monthS } = calendar.month(nowMs);
  return {
    month,
    monthS,
    limit,
    remaining: limit === undefined ? Number.POSITIVE_INFINITY : Math.max(0, limit - calls),
    resetS: Math.max(1, Math.ceil((endsAtMs - nowMs) / 1000)),
  };
}

/** The error for a call above the rate. */
export function rateLimited({ callsPerSecond, retryAfterS }: RateDecision): ApiError {
  return new ApiError('RATE_LIMITED', `At most ${callsPerSecond} calls a second.`, { retryAfterS });
}

/** The error for a call above the monthly quota. */
export function quotaExceeded({ limit, month, resetS }: QuotaStatus): ApiError {
  return new ApiError('QUOTA_EXCEEDED', `All ${limit} calls of ${month} are used.`, { retryAfterS: resetS });
}

/** `Retry-After` while the first call with a key is running, in seconds. */
const inProgressRetryAfterS = 1;

const keyPattern = /^[\x21-\x7e]{1,255}$/;
const quoted = /^"(.*)"$/;

/** Reads the Idempotency-Key from all values sent; undefined if there are none. Throws IDEMPOTENCY_KEY_INVALID. */
export function readIdempotencyKey(sentKeys: readonly string[]): string | undefined {
  if (sentKeys.length === 0) return undefined;
  const [sent = '', ...more] = sentKeys;
  const key = quoted.exec(sent)?.[1] ?? sent;
  if (more.length === 0 && keyPattern.test(key)) return key;
  throw new ApiError(
    'IDEMPOTENCY_KEY_INVALID',
    'The header Idempotency-Key must be 1 to 255 visible ASCII characters, once.',
  );
}

/**
 * The SHA-256 digest by which a key recognizes its request: of the operation, the message and its violations. It is the same
 * over both APIs.
 */
export function fingerprintOf(method: DescMethodUnary, reading: Reading | ApiError): Uint8Array {
  const read =
    reading instanceof ApiError
      ? [Buffer.from(reading.message)]
      : [toBinary(method.input, reading.message), Buffer.from(JSON.stringify(reading.violations))];
  return hash('sha256', Buffer.concat([Buffer.from(`${operationName(method)}\0`), ...read]), 'buffer');
}

/**
 * Keeps the keys of running calls in memory only, because a call ends with its process. Returns a function that begins a call with
 * an idempotency key; what that returns ends it. While another call with the key runs, it throws IDEMPOTENCY_IN_PROGRESS for the
 * same request and IDEMPOTENCY_KEY_REUSED for a different one.
 */
export function createRunningKeys() {
  const running = new Map<string, Uint8Array>();
  return ({ callerId, key, fingerprint }: IdempotencyClaim): (() => void) => {
    const name = `${callerId} ${key}`;
    const other = running.get(name);
    if (other !== undefined) throw Buffer.compare(other, fingerprint) === 0 ? inProgress() : keyReused();
    running.set(name, fingerprint);
    return () => {
      running.delete(name);
    };
  };
}

/** The error for a key that was used with a different request. */
function keyReused(): ApiError {
  return new ApiError('IDEMPOTENCY_KEY_REUSED', 'The Idempotency-Key was used for another request before.');
}

function inProgress(): ApiError {
  return new ApiError('IDEMPOTENCY_IN_PROGRESS', 'The first call with this Idempotency-Key is under way.', {
    retryAfterS: inProgressRetryAfterS,
  });
}

/** How far the wall clock may run ahead of the monotonic clock before that counts as a jump, in milliseconds. */
const gainMaxMs = 1_000;

/**
 * Returns the wall clock in Unix milliseconds, but ignores a forward jump for as long as nonces are kept. A clock that was set
 * ahead may be set back, and then the nonces and idempotency keys from before are still needed. Starts in 1970, because a new
 * process does not know whether the clock has jumped.
 */
export function createJumpResistantClock({ nowMs, monotonicMs }: Clock): () => number {
  let leadMs = 0;
  let agreedAtMs = monotonicMs();
  return () => {
    const atMs = monotonicMs();
    const wallLeadMs = nowMs() - atMs;
    if (wallLeadMs <= leadMs + gainMaxMs || atMs - agreedAtMs >= nonceRetentionS * 1000) {
      leadMs = wallLeadMs;
      agreedAtMs = atMs;
    }
    return atMs + leadMs;
  };
}

/** The result of a store request whose admission succeeded. */
type Admitted<K extends Kind> = Exclude<CommandResult<K>, { readonly kind: 'NOT_ADMITTED' }>;

/** The store requests of one call. The first of them carries the admission of the call: nonce, idempotency key and quota. */
export class CallTransaction {
  readonly #store: Pick<Store, 'execute'>;
  readonly #share: number;
  readonly #exceeded: (calls: number) => ApiError;
  /** Undefined once the first store request is made. */
  #admission: Admission | undefined;
  #takesQuota = false;
  /** Set once the first store request is made. */
  #claim: IdempotencyClaim | undefined;
  /** Whether the result is the stored result of an earlier call. */
  isReplay = false;
  /** Request id of the earlier call with the same idempotency key. */
  claimedBy: string | undefined;
  /** Counted calls of the month, once the store has returned them. */
  calls: number | undefined;

  /** `share` is `StoreRequest.share`; `exceeded` makes the error of a call above the quota from the counted calls. */
  constructor(
    store: Pick<Store, 'execute'>,
    share: number,
    admission: Admission,
    exceeded: (calls: number) => ApiError,
  ) {
    this.#store = store;
    this.#share = share;
    this.#admission = admission;
    this.#exceeded = exceeded;
  }

  /** Adds an idempotency key to the admission. Call it before the first store request. */
  claim(idempotency: IdempotencyClaim): void {
    if (this.#admission !== undefined) this.#admission = { ...this.#admission, idempotency };
  }

  /** Counts the call against its quota, if it has one. Call it before the first store request. */
  takeQuota(): void {
    this.#takesQuota = true;
  }

  /** Runs a command. Throws the ApiError of the command or of the admission. */
  readonly execute: Execute = (command) => this.#perform(this.#request(command));

  /** Runs a further command; its result replaces the one stored under the call's idempotency key. */
  readonly executeNext: Execute = (command) =>
    this.#perform({ ...this.#request(command), continues: this.#claim });

  /** Stores the admission, if no command did. Throws its ApiError. */
  readonly admit = async (): Promise<void> => {
    if (this.#admission !== undefined) this.#admitted(await this.#store.execute(this.#request(undefined)));
  };

  /**
   * Returns the error of a call that failed with `error`. If no store request was made yet, this stores the admission with the
   * error as its result, and returns the admission's own error if there is one.
   */
  async reject(error: unknown): Promise<ApiError> {
    const apiError = toApiError(error);
    if (this.#admission === undefined) return apiError;
    try {
      const request = this.#request({ kind: 'Reject', apiError: apiErrorData(apiError) });
      this.#admitted(await this.#store.execute(request));
      return apiError;
    } catch (notAdmitted) {
      return toApiError(notAdmitted);
    }
  }

  async #perform<K extends Kind>(request: StoreRequest<K>): Promise<Result<K>> {
    const result = this.#admitted(await this.#store.execute(request));
    if (result.kind === 'DONE') return result.result;
    throw errorOf(result.apiError);
  }

  #request<K extends Kind>(effect: Command<K> | undefined): StoreRequest<K> {
    let admission = this.#admission;
    if (admission?.quota !== undefined) {
      const take = this.#takesQuota && !isUnavailable(effect as Command | undefined);
      admission = { ...admission, quota: { ...admission.quota, take } };
    }
    this.#claim ??= admission?.idempotency;
    this.#admission = undefined;
    return { share: this.#share, admission, effect };
  }

  #admitted<K extends Kind>({ outcome, calls, claimedBy }: Executed<K>): Admitted<K> {
    this.calls ??= calls;
    this.claimedBy ??= claimedBy;
    if (outcome.kind === 'NOT_ADMITTED') throw this.#notAdmitted(outcome.why);
    this.isReplay ||= outcome.isReplay;
    return outcome;
  }

  #notAdmitted(why: AdmissionFault): ApiError {
    switch (why) {
      case 'NONCE_REUSED':
        return new ApiError(
          'NONCE_REUSED',
          'The nonce was used before. Every request needs a new one, a retry too.',
        );
      case 'IDEMPOTENCY_KEY_REUSED':
        return keyReused();
      case 'QUOTA_EXCEEDED':
        return this.#exceeded(this.calls ?? 0);
    }
  }
}

/** Whether a command only records UNAVAILABLE. Such a call does not count against the quota. */
function isUnavailable(effect: Command | undefined): boolean {
  return effect?.kind === 'Reject' && effect.apiError.reason === 'UNAVAILABLE';
}
