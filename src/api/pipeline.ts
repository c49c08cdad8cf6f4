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
import { isWriting, operationName } from './operation.ts';
import type { Principal, ServicePrincipal } from './principal.ts';
import { createRateLimit } from './rate-limit.ts';
import { type RequestEvent, setCaller } from './request-event.ts';
import { createStreams } from './streams.ts';

/** Takes calls of both doors through the documented checks to their operations. */
export interface Calls {
  /** A call of an external platform. Rejects with what `readBody` throws beside errors, and with nothing else. */
  signed(call: SignedCall, event: RequestEvent): Promise<CallResult>;
  /** A call of somebody who is identified already. Never rejects. */
  identified(principal: Principal, call: RoutedCall, event: RequestEvent): Promise<CallResult>;
  /** A call of somebody who is identified already, answered by a stream; iterating throws ApiError, or anything internalError. */
  streamed(principal: ServicePrincipal, call: StreamedCall): AsyncIterable<Message>;
  /** Streams that are open. */
  openStreams(): number;
}

/** What calls work with. */
export interface CallsDependencies {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly keyRing: KeyRing;
  readonly clock: Clock;
  readonly calendar: Calendar;
  /**
   * Unix seconds up to which the store cannot tell whether a request was carried out before, by its timestamp: it was
   * restored from a backup. 0 if it can.
   */
  readonly nonceGapUntilS?: () => number;
}

/**
 * Calls of both doors carried out at the same time; what comes on top is refused at once. Requests still arriving do not
 * count, and calls that their caller has given up do until they end. A call that waited (`pause`) goes on even if there are as many by then.
 */
const callsUnderWayMax = 2_000;

/** The pipeline of calls to these operations. Its functions are in the order of the documented checks. */
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
  const steadyMs = createJumpResistantClock(clock);
  const runningKeys = createRunningKeys();
  const streams = createStreams();
  let callsUnderWay = 0;

  /** Headers, clock, body; from then on the call is under way. */
  async function signed(call: SignedCall, event: RequestEvent): Promise<CallResult> {
    let credentials: Credentials;
    let body: Uint8Array;
    try {
      credentials = readCredentials(call.credentials);
      checkTimestamp(credentials.timestamp, clock.nowMs());
      refuseNonceGap(credentials.timestamp);
      body = await call.readBody();
    } catch (error) {
      if (error instanceof ApiError) return refused(error);
      throw error;
    }
    return underWay(() => fromSignature(call, credentials, body, event));
  }

  /** Throws UNAVAILABLE for a request that the original may have carried out after the backup that was restored. */
  function refuseNonceGap(timestamp: string): void {
    const untilS = nonceGapUntilS();
    if (Number(timestamp) > untilS) return;
    const retryAfterS = untilS + 1 - Math.floor(clock.nowMs() / 1000);
    throw new ApiError(
      'UNAVAILABLE',
      `The registry was restored from a backup: requests with X-Timestamp up to ${untilS} are refused, ` +
        'since they may have been carried out before. Nothing was stored; sign the request anew after that time.',
      { retryAfterS: Math.max(1, retryAfterS) },
    );
  }

  /** Carries a call out if there is room for one more. Never rejects. */
  async function underWay(carryOut: () => Promise<CallResult>): Promise<CallResult> {
    if (callsUnderWay >= callsUnderWayMax) return refused(unavailable('Too many calls are under way.'));
    callsUnderWay += 1;
    try {
      return await carryOut();
    } catch (error) {
      return refused(toApiError(error));
    } finally {
      callsUnderWay -= 1;
    }
  }

  /** Waits outside of the calls under way. Whoever lets calls wait bounds how many do. */
  async function pause<T>(wait: () => Promise<T>): Promise<T> {
    callsUnderWay -= 1;
    try {
      return await wait();
    } finally {
      callsUnderWay += 1;
    }
  }

  /** Signature and rate. Throws what authentication does; whoever is authenticated is told the limits. */
  async function fromSignature(
    call: SignedCall,
    credentials: Credentials,
    body: Uint8Array,
    event: RequestEvent,
  ): Promise<CallResult> {
    const { method, target } = call;
    const nowMs = clock.nowMs();
    // Once more: the body may have taken its time, and the nonce is remembered from now on.
    checkTimestamp(credentials.timestamp, nowMs);
    const admission = admissionAt(nowMs);
    const { platform, nonce } = authenticate(credentials, { method, target, body }, admission.nowS);
    setCaller(event, platform.caller);
    const rate = rateLimit.take(platform.callerId, tiers[platform.tier].callsPerSecond);
    const quota = quotaClaim(platform, calendar, nowMs);
    const statusAfter = (calls: number) => quotaStatus(platform, calendar, nowMs, calls);
    const units = new CallTransaction(store, platform.callerId, { ...admission, nonce, quota }, (calls) =>
      quotaExceeded(statusAfter(calls)),
    );
    const answer = rate.allowed
      ? await fromRoute(platform, units, () => routed(call, body, event), event)
      : rateLimited(rate);
    const calls = units.calls ?? (await countedCalls(quota));
    const limits = calls === undefined ? undefined : { rate, quota: statusAfter(calls) };
    return { ...told(answer, units), limits };
  }

  /** A call that is identified by its door: there is no nonce, rate or quota. */
  function identified(principal: Principal, call: RoutedCall, event: RequestEvent): Promise<CallResult> {
    return underWay(async () => {
      const units = new CallTransaction(
        store,
        principal.callerId,
        admissionAt(clock.nowMs()),
        () => new ApiError('QUOTA_EXCEEDED', 'There is no quota.'),
      );
      return told(await fromRoute(principal, units, () => call, event), units);
    });
  }

  /** There is nothing to admit: what answers with a stream changes nothing. */
  function streamed(principal: ServicePrincipal, call: StreamedCall): AsyncIterable<Message> {
    const { method, message, signal } = call;
    const execute = executorOf(store, principal.callerId);
    const answers = dispatcher.stream(method, message, { principal, execute, signal });
    return streams.begin(principal.tokenId, answers, signal);
  }

  /**
   * Route, idempotency key, message, quota, operation. Never rejects; whatever is refused, the call is admitted, and what
   * it tells is durable.
   */
  async function fromRoute(
    principal: Principal,
    units: CallTransaction,
    route: () => RoutedCall,
    { requestId }: RequestEvent,
  ): Promise<Message | ApiError> {
    let endKey = () => {};
    try {
      const { method, idempotencyKeys, isFreeOfQuota, onPause, read } = route();
      const key = isWriting(method) ? readIdempotencyKey(idempotencyKeys) : undefined;
      const reading = attempt(read);
      if (key !== undefined) {
        const { callerId } = principal;
        const claim = { callerId, key, requestId, fingerprint: fingerprintOf(method, reading) };
        endKey = runningKeys.begin(claim);
        units.claim(claim);
      }
      if (!isFreeOfQuota) units.takeQuota();
      if (reading instanceof ApiError) throw reading;
      const { message, violations } = reading;
      const { execute, executeNext } = units;
      const pauseCall = <T>(wait: () => Promise<T>) => {
        onPause?.();
        return pause(wait);
      };
      const call = { principal, execute, executeNext, pause: pauseCall };
      const answer = await dispatcher.invoke(method, message, call, violations);
      await units.admit();
      return answer;
    } catch (error) {
      return await units.refused(error);
    } finally {
      endKey();
    }
  }

  function admissionAt(nowMs: number) {
    return { nowS: Math.floor(nowMs / 1000), sweepAtS: Math.floor(steadyMs() / 1000) };
  }

  /** For a call that was not admitted: how many were counted, if the store tells. */
  async function countedCalls(quota: QuotaClaim): Promise<number | undefined> {
    return store.execute({ share: quota.callerId, admission: { nowS: 0, quota } }).then(
      ({ calls }) => calls,
      () => undefined,
    );
  }

  return { signed, identified, streamed, openStreams: streams.open };
}

/** Finds what is called, and notes it. Throws ApiError. */
function routed(call: SignedCall, body: Uint8Array, event: RequestEvent): RoutedCall {
  const found = call.route(body);
  event.operation = operationName(found.method);
  return found;
}

const refused = (answer: ApiError): CallResult => ({ answer, isReplay: false });

/** An answer, and whether it is that to an earlier call. Who is told to come again is told so anew each time. */
function told(answer: Message | ApiError, units: CallTransaction): CallResult {
  if (answer instanceof ApiError && !isFinal(answer.reason)) return refused(answer);
  const answeredTo = units.claimedBy;
  return { answer, isReplay: units.isReplay || answeredTo !== undefined, answeredTo };
}

function attempt(read: () => Reading): Reading | ApiError {
  try {
    return read();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
}
