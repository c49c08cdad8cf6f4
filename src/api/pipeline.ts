import type { DescMethodServerStreaming, DescMethodUnary, Message } from '@bufbuild/protobuf';
import type { Calendar } from '../domain/calendar.ts';
import { tiers } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError, isFinal, toApiError, unavailable } from '../domain/reason.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { createConcurrencyLimit } from '../lib/concurrency.ts';
import { executorOf, type QuotaClaim, type Store } from '../store/store.ts';
import {
  CallTransaction,
  createJumpResistantClock,
  createRateLimit,
  createRunningKeys,
  fingerprintOf,
  type Limits,
  quotaExceeded,
  quotaStatus,
  rateLimited,
  readIdempotencyKey,
} from './admission.ts';
import {
  type Credentials,
  checkNonceGap,
  checkTimestamp,
  createAuthentication,
  readCredentials,
  type SentCredentials,
} from './authentication.ts';
import { type RequestEvent, setCaller } from './call-observer.ts';
import {
  type Call,
  type Dispatcher,
  isWriting,
  operationName,
  type Principal,
  type Reading,
  type TypedPrincipal,
} from './operation.ts';
import { mergeRatesOf } from './shared-rates.ts';

/** A signed call before its checks. The pipeline calls its functions in this order, each at most once. */
export interface SignedCall {
  /** Upper case. */
  readonly method: string;
  /** The raw request target as sent, query included. */
  readonly target: string;
  readonly credentials: SentCredentials;
  /** Reads the body. Throws ApiError; the pipeline passes other errors on. */
  readBody(): Promise<Uint8Array>;
  /** Finds the operation. Throws ApiError. */
  route(body: Uint8Array): RoutedCall;
}

/** A call that was routed to an operation. */
export interface RoutedCall {
  readonly method: DescMethodUnary;
  /** All values sent for Idempotency-Key. */
  readonly idempotencyKeys: readonly string[];
  /** Whether the call does not count against the quota. */
  readonly isFreeOfQuota?: boolean;
  /** Called whenever the call begins to wait for another party, such as the payment provider. */
  onPause?(): void;
  /** Reads the message. Throws ApiError. */
  read(): Reading;
}

/** A call whose response is a stream. */
export interface StreamedCall {
  readonly method: DescMethodServerStreaming;
  readonly message: Message;
  /** Aborted when the client is gone or the server drains. */
  readonly signal: AbortSignal;
}

/** The result of a call. Everything in it is durable. */
export interface CallResult {
  readonly response: Message | ApiError;
  /**
   * Whether this is the stored result of an earlier call with the same Idempotency-Key. The earlier call itself may have
   * returned PAYMENT_PENDING, if the result was not yet known.
   */
  readonly isReplay: boolean;
  /** Request id of that call. */
  readonly originalRequestId?: string | undefined;
  /** Set for an authenticated platform. */
  readonly limits?: Limits | undefined;
}

/** Runs the calls of both APIs: authenticate, limit, admit, run, respond. */
export type Calls = ReturnType<typeof createCalls>;

/** The dependencies of the pipeline. */
export interface CallsDependencies {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly keyRing: KeyRing;
  readonly clock: Clock;
  readonly calendar: Calendar;
  /** `NonceGap.untilS`. */
  readonly nonceGapUntilS?: () => number;
  /** `BusinessClock.aheadMs`. */
  readonly aheadMs?: () => number;
}

/**
 * Calls that run at the same time on both listeners; further calls get UNAVAILABLE. A call counts from when its body has arrived
 * until it ends, even if its client is gone. A call that returns from `pause` continues above the limit.
 */
const runningMax = 2_000;

/** Largest number of open streams: of all tokens together, and of one token. */
export const streamsMax = { all: 200, ofToken: 20 } as const;

/** The pipeline in front of these operations. Its functions are in the documented order of checks. */
export function createCalls({
  store,
  dispatcher,
  keyRing,
  clock,
  calendar,
  nonceGapUntilS = () => 0,
  aheadMs = () => 0,
}: CallsDependencies) {
  const authenticate = createAuthentication(store, keyRing);
  const takeRate = createRateLimit(clock, mergeRatesOf(store));
  const admissionAt = createAdmissionTimes(clock, aheadMs);
  const { limitRunning, pause } = createRunningLimit();
  const runRouted = createRoutedCalls(dispatcher, pause);
  const streams = createConcurrencyLimit<string>({
    ofAll: streamsMax.all,
    ofEach: streamsMax.ofToken,
    tooMany: `At most ${streamsMax.ofToken} streams at the same time with one token.`,
    full: 'Too many streams are open.',
  });

  /**
   * Runs a signed call of an external platform: checks headers and clock, reads the body, and runs the call. Rejects only with
   * errors of `readBody` that are no ApiError.
   */
  async function signed(call: SignedCall, event: RequestEvent): Promise<CallResult> {
    let credentials: Credentials;
    let body: Uint8Array;
    const nowMs = clock.nowMs();
    try {
      credentials = readCredentials(call.credentials);
      checkTimestamp(credentials.timestamp, nowMs);
      checkNonceGap(credentials.timestamp, nonceGapUntilS(), nowMs);
      body = await call.readBody();
    } catch (error) {
      if (error instanceof ApiError) return rejected(error);
      throw error;
    }
    // Awaited, because an async function that returns a promise takes two turns more.
    return await limitRunning(() => runSigned(call, credentials, body, event));
  }

  /** Checks signature and rate, and runs the call. Throws the errors of authentication; later ones are in the result, with limits. */
  async function runSigned(
    call: SignedCall,
    credentials: Credentials,
    body: Uint8Array,
    event: RequestEvent,
  ): Promise<CallResult> {
    const { method, target } = call;
    const nowMs = clock.nowMs();
    // Again, because the body may have taken long: the nonce of an expired timestamp may already be forgotten.
    checkTimestamp(credentials.timestamp, nowMs);
    const admission = admissionAt(nowMs);
    const { platform, nonce } = authenticate(credentials, { method, target, body }, admission.nowS);
    setCaller(event, platform.caller);
    const { callerId, monthlyQuota: limit } = platform;
    const rate = takeRate(callerId, tiers[platform.tier].callsPerSecond);
    const businessMs = nowMs + aheadMs();
    const quota = { callerId, month: calendar.month(businessMs).name, limit, take: false };
    const quotaAfter = (calls: number) => quotaStatus(platform, calendar, businessMs, calls);
    const transaction = new CallTransaction(store, callerId, { ...admission, nonce, quota }, (calls) =>
      quotaExceeded(quotaAfter(calls)),
    );
    const response = rate.allowed
      ? await runRouted(platform, transaction, () => call.route(body), event)
      : rateLimited(rate);
    const calls = transaction.calls ?? (await countedCalls(store, quota));
    const limits = calls === undefined ? undefined : { rate, quota: quotaAfter(calls) };
    return { ...resultOf(response, transaction), limits };
  }

  /** Runs a call that its listener has authenticated. It has no nonce, rate or quota. Never rejects. */
  function identified(principal: Principal, call: RoutedCall, event: RequestEvent): Promise<CallResult> {
    return limitRunning(async () => {
      const admission = admissionAt(clock.nowMs());
      const transaction = new CallTransaction(store, principal.callerId, admission, noQuota);
      return resultOf(await runRouted(principal, transaction, () => call, event), transaction);
    });
  }

  /**
   * Runs a streaming call of an authenticated principal. It changes nothing in the store, so it needs no admission. Iterating
   * throws ApiError, or any error for a fault of the server. The stream ends when the signal is aborted, even if nobody reads it.
   */
  function streamed(principal: TypedPrincipal, { method, message, signal }: StreamedCall) {
    const execute = executorOf(store, principal.callerId);
    const responses = dispatcher.stream(method, message, { principal, execute, signal });
    const token = principal.kind === 'local' ? principal.caller : principal.tokenId;
    const stream = limited(() => streams.enter(token), responses);
    // A client that is gone reads no further message, so the generator would never finish by itself.
    signal.addEventListener('abort', () => void stream.return(), { once: true });
    return stream;
  }

  return {
    ...{ signed, identified, streamed },
    /** Throws PERMISSION_DENIED if a principal lacks the scope of a method. */
    checkScope: dispatcher.checkScope,
    /** How many streams are open. */
    openStreams: streams.taken,
  };
}

/** Returns the function that makes the times of an admission from the time of its call. */
function createAdmissionTimes(clock: Clock, aheadMs: () => number) {
  const jumpResistantMs = createJumpResistantClock(clock);
  return (nowMs: number) => {
    const sweepAtS = Math.floor(jumpResistantMs() / 1000);
    return { nowS: Math.floor(nowMs / 1000), sweepAtS, aheadS: aheadMs() / 1000 };
  };
}

/** Yields the responses of a stream. `enter` takes its slot when the first one is read, and returns the function that frees it. */
async function* limited(enter: () => () => void, responses: AsyncGenerator<Message, void>) {
  const leave = enter();
  try {
    yield* responses;
  } finally {
    leave();
  }
}

/** Limits the calls that run. Whatever pauses calls limits how many wait. */
function createRunningLimit() {
  let running = 0;
  return {
    /** Runs a call unless too many are running. Never rejects. */
    limitRunning: async (run: () => Promise<CallResult>): Promise<CallResult> => {
      if (running >= runningMax) return rejected(unavailable('Too many calls are running.'));
      running += 1;
      try {
        return await run();
      } catch (error) {
        return rejected(toApiError(error));
      } finally {
        running -= 1;
      }
    },
    /** Waits without counting as running. */
    pause: async <T>(wait: () => Promise<T>): Promise<T> => {
      running -= 1;
      try {
        return await wait();
      } finally {
        running += 1;
      }
    },
  };
}

/**
 * Runs calls from their route on: idempotency key, message, quota, operation. Never rejects. Even a call that fails has stored
 * its admission when this resolves, and everything in the result is durable.
 */
function createRoutedCalls(dispatcher: Dispatcher, pause: Call['pause']) {
  const beginKey = createRunningKeys();
  return async (
    principal: Principal,
    transaction: CallTransaction,
    findRoute: () => RoutedCall,
    event: RequestEvent,
  ): Promise<Message | ApiError> => {
    let endKey = () => {};
    try {
      const { method, idempotencyKeys, isFreeOfQuota, onPause, read } = findRoute();
      event.operation = operationName(method);
      const key = isWriting(method) ? readIdempotencyKey(idempotencyKeys) : undefined;
      const reading = readingOrError(read);
      if (key !== undefined) {
        const [{ callerId }, { requestId }] = [principal, event];
        const claim = { callerId, key, requestId, fingerprint: fingerprintOf(method, reading) };
        endKey = beginKey(claim);
        transaction.claim(claim);
      }
      if (!isFreeOfQuota) transaction.takeQuota();
      if (reading instanceof ApiError) throw reading;
      const { message, violations } = reading;
      const { admit, execute, executeNext } = transaction;
      const pauseCall = <T>(wait: () => Promise<T>) => {
        onPause?.();
        return pause(wait);
      };
      const call = { principal, admit, execute, executeNext, pause: pauseCall };
      const response = await dispatcher.invoke(method, message, call, violations);
      await transaction.admit();
      return response;
    } catch (error) {
      return await transaction.reject(error);
    } finally {
      endKey();
    }
  };
}

/** The counted calls, for a call that was not admitted; undefined if the store fails. */
async function countedCalls(store: Store, quota: QuotaClaim): Promise<number | undefined> {
  return store.execute({ share: quota.callerId, admission: { nowS: 0, quota } }).then(
    ({ calls }) => calls,
    () => undefined,
  );
}

const noQuota = () => new ApiError('QUOTA_EXCEEDED', 'There is no quota.');

const rejected = (response: ApiError): CallResult => ({ response, isReplay: false });

/** The result of a call. An error after which a retry may succeed is not stored, so it is never a replay. */
function resultOf(response: Message | ApiError, transaction: CallTransaction): CallResult {
  if (response instanceof ApiError && !isFinal(response.reason)) return rejected(response);
  const originalRequestId = transaction.claimedBy;
  const isReplay = transaction.isReplay || originalRequestId !== undefined;
  return { response, isReplay, originalRequestId };
}

function readingOrError(read: () => Reading): Reading | ApiError {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}
