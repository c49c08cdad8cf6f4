import type { Message } from '@bufbuild/protobuf';
import type { Calendar } from '../domain/calendar.ts';
import { tiers } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { ApiError, isFinal, toApiError, unavailable } from '../domain/reason.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import { executorOf, type QuotaClaim, type Store } from '../store/store.ts';
import { createAuthentication } from './authentication.ts';
import { CallTransaction } from './call-transaction.ts';
import { type Credentials, checkTimestamp, readCredentials } from './credentials.ts';
import type { Dispatcher } from './dispatcher.ts';
import { createRunningKeys, fingerprintOf, readIdempotencyKey } from './idempotency.ts';
import type { CallResult, Reading, RoutedCall, SignedCall, StreamedCall } from './incoming-call.ts';
import { createJumpResistantClock } from './jump-resistant-clock.ts';
import { quotaClaim, quotaExceeded, quotaStatus, rateLimited } from './limits.ts';
import { type Call, isWriting, operationName } from './operation.ts';
import type { Principal, ServicePrincipal } from './principal.ts';
import { createRateLimit } from './rate-limit.ts';
import { type RequestEvent, setCaller } from './request-event.ts';
import { createStreams } from './streams.ts';

/** Runs the calls of both APIs: authenticate, limit, admit, run, respond. */
export interface Calls {
  /** Runs a signed call of an external platform. Rejects only with errors of `readBody` that are no ApiError. */
  signed(call: SignedCall, event: RequestEvent): Promise<CallResult>;
  /** Runs a call of an authenticated principal. Never rejects. */
  identified(principal: Principal, call: RoutedCall, event: RequestEvent): Promise<CallResult>;
  /** Runs a streaming call of an authenticated principal. Iterating throws ApiError, or any error for a fault of the server. */
  streamed(principal: ServicePrincipal, call: StreamedCall): AsyncIterable<Message>;
  /** How many streams are open. */
  openStreams(): number;
}

/** The dependencies of the pipeline. */
export interface CallsDependencies {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly keyRing: KeyRing;
  readonly clock: Clock;
  readonly calendar: Calendar;
  /** `NonceGap.untilS`. */
  readonly nonceGapUntilS?: () => number;
}

/**
 * Calls that run at the same time on both listeners; further calls get UNAVAILABLE. A call counts from when its body has arrived
 * until it ends, even if its client is gone. A call that returns from `pause` continues above the limit.
 */
const runningMax = 2_000;

/** The pipeline in front of these operations. Its functions are in the documented order of checks. */
export function createCalls({
  store,
  dispatcher,
  keyRing,
  clock,
  calendar,
  nonceGapUntilS = () => 0,
}: CallsDependencies): Calls {
  const authenticate = createAuthentication({ store, keyRing });
  const rateLimit = createRateLimit(clock.monotonicMs);
  const jumpResistantMs = createJumpResistantClock(clock);
  const { limitRunning, pause } = createRunningLimit();
  const runRouted = createRoutedCalls(dispatcher, pause);
  const streams = createStreams();

  /** Checks headers and clock, reads the body, and runs the call. */
  async function signed(call: SignedCall, event: RequestEvent): Promise<CallResult> {
    let credentials: Credentials;
    let body: Uint8Array;
    try {
      credentials = readCredentials(call.credentials);
      checkTimestamp(credentials.timestamp, clock.nowMs());
      checkNonceGap(credentials.timestamp, nonceGapUntilS(), clock);
      body = await call.readBody();
    } catch (error) {
      if (error instanceof ApiError) return rejected(error);
      throw error;
    }
    return limitRunning(() => runSigned(call, credentials, body, event));
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
    const rate = rateLimit.take(platform.callerId, tiers[platform.tier].callsPerSecond);
    const quota = quotaClaim(platform, calendar, nowMs);
    const quotaAfter = (calls: number) => quotaStatus(platform, calendar, nowMs, calls);
    const transaction = new CallTransaction(
      store,
      platform.callerId,
      { ...admission, nonce, quota },
      (calls) => quotaExceeded(quotaAfter(calls)),
    );
    const response = rate.allowed
      ? await runRouted(platform, transaction, () => route(call, body, event), event)
      : rateLimited(rate);
    const calls = transaction.calls ?? (await countedCalls(store, quota));
    const limits = calls === undefined ? undefined : { rate, quota: quotaAfter(calls) };
    return { ...resultOf(response, transaction), limits };
  }

  /** Runs a call that its listener has authenticated. It has no nonce, rate or quota. */
  function identified(principal: Principal, call: RoutedCall, event: RequestEvent): Promise<CallResult> {
    return limitRunning(async () => {
      const admission = admissionAt(clock.nowMs());
      const transaction = new CallTransaction(store, principal.callerId, admission, noQuota);
      return resultOf(await runRouted(principal, transaction, () => call, event), transaction);
    });
  }

  /** A streaming method changes nothing, so it needs no admission. */
  function streamed(principal: ServicePrincipal, call: StreamedCall): AsyncIterable<Message> {
    const { method, message, signal } = call;
    const execute = executorOf(store, principal.callerId);
    const responses = dispatcher.stream(method, message, { principal, execute, signal });
    return streams.begin(principal.tokenId, responses, signal);
  }

  function admissionAt(nowMs: number) {
    return { nowS: Math.floor(nowMs / 1000), sweepAtS: Math.floor(jumpResistantMs() / 1000) };
  }

  return { signed, identified, streamed, openStreams: streams.open };
}

/** Throws UNAVAILABLE for a request that the original registry may have run after the backup that was restored. */
function checkNonceGap(timestamp: string, untilS: number, clock: Clock): void {
  if (Number(timestamp) > untilS) return;
  const retryAfterS = untilS + 1 - Math.floor(clock.nowMs() / 1000);
  throw new ApiError(
    'UNAVAILABLE',
    `The registry was restored from a backup. It rejects requests with X-Timestamp up to ${untilS}, ` +
      'because they may have been carried out before. Nothing was stored; sign the request again after that time.',
    { retryAfterS: Math.max(1, retryAfterS) },
  );
}

/** Limits the calls that run. */
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
    /** Waits without counting as running. Whatever pauses calls limits how many wait. */
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
  const runningKeys = createRunningKeys();
  return async (
    principal: Principal,
    transaction: CallTransaction,
    findRoute: () => RoutedCall,
    { requestId }: RequestEvent,
  ): Promise<Message | ApiError> => {
    let endKey = () => {};
    try {
      const { method, idempotencyKeys, isFreeOfQuota, onPause, read } = findRoute();
      const key = isWriting(method) ? readIdempotencyKey(idempotencyKeys) : undefined;
      const reading = readingOrError(read);
      if (key !== undefined) {
        const { callerId } = principal;
        const claim = { callerId, key, requestId, fingerprint: fingerprintOf(method, reading) };
        endKey = runningKeys.begin(claim);
        transaction.claim(claim);
      }
      if (!isFreeOfQuota) transaction.takeQuota();
      if (reading instanceof ApiError) throw reading;
      const { message, violations } = reading;
      const { execute, executeNext } = transaction;
      const pauseCall = <T>(wait: () => Promise<T>) => {
        onPause?.();
        return pause(wait);
      };
      const call = { principal, execute, executeNext, pause: pauseCall };
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

/** Routes a call and records its operation. Throws ApiError. */
function route(call: SignedCall, body: Uint8Array, event: RequestEvent): RoutedCall {
  const found = call.route(body);
  event.operation = operationName(found.method);
  return found;
}

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
