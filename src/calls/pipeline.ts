import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { Calendar } from '../domain/calendar.ts';
import { tiers } from '../domain/caller.ts';
import type { Clock } from '../domain/clock.ts';
import { asRefusal, isFinal, Refusal, unavailable } from '../domain/reason.ts';
import type { KeyRing } from '../keys/key-ring.ts';
import type { RequestEvent } from '../observe/request-event.ts';
import type { Store } from '../store/store.ts';
import { createAuthentication } from './authentication.ts';
import { checkTimestamp, readCredentials } from './credentials.ts';
import type { Dispatcher } from './dispatcher.ts';
import { createRunningKeys, fingerprintOf, readIdempotencyKey } from './idempotency.ts';
import type { Outcome, Reading, RoutedCall, SignedCall } from './incoming-call.ts';
import { quotaClaim, quotaExceeded, quotaStatus, rateLimited } from './limits.ts';
import type { PlatformPrincipal, Principal } from './principal.ts';
import { createRateLimit } from './rate-limit.ts';
import { createUnits, type Units } from './units.ts';

/** Takes calls of both doors through the documented checks to their operations. */
export interface Calls {
  /** A call of an external platform. Rejects with what `readBody` throws beside refusals, and with nothing else. */
  signed(call: SignedCall, event: RequestEvent): Promise<Outcome>;
  /** A call of somebody who is identified already. Never rejects. */
  identified(principal: Principal, call: RoutedCall, event: RequestEvent): Promise<Outcome>;
}

/** What calls work with. */
export interface CallsDependencies {
  readonly store: Store;
  readonly dispatcher: Dispatcher;
  readonly keyRing: KeyRing;
  readonly clock: Clock;
  readonly calendar: Calendar;
}

/** Signed calls carried out at the same time; what comes on top is refused at once. Requests still arriving do not count. */
const callsUnderWayMax = 2_000;

/** Makes the pipeline of calls to these operations. */
export function createCalls({ store, dispatcher, keyRing, clock, calendar }: CallsDependencies): Calls {
  const authenticate = createAuthentication({ store, keyRing, clock });
  const rateLimit = createRateLimit(clock.monotonicMs);
  const runningKeys = createRunningKeys();
  let callsUnderWay = 0;

  /** From the signature on, in the order of the documented checks. */
  async function carryOutSigned(call: SignedCall, body: Uint8Array, event: RequestEvent): Promise<Outcome> {
    const { method, target, credentials } = call;
    const nowMs = clock.nowMs();
    const nowS = Math.floor(nowMs / 1000);
    const { platform, nonce } = authenticate(readCredentials(credentials), { method, target, body }, nowS);
    event.caller = platform.caller;
    const rate = rateLimit.take(platform.callerId, tiers[platform.tier].callsPerSecond);
    const standing = (calls: number) => quotaStatus(platform, calendar, nowMs, calls);
    const quota = quotaClaim(platform, calendar, nowMs);
    const units = createUnits(store, { nowS, nonce, quota }, (calls) => quotaExceeded(standing(calls)));
    const routed = () => {
      const found = call.route(body);
      event.operation = `${found.method.parent.typeName}/${found.method.name}`;
      return found;
    };
    const answer = rate.allowed
      ? await carryOut(platform, units, routed, event).catch(asRefusal)
      : rateLimited(rate);
    const calls = units.calls() ?? (await countedCalls(platform, nowMs));
    const limits = calls === undefined ? undefined : { rate, quota: standing(calls) };
    return { ...told(answer, units), limits };
  }

  /** From the route on. Throws Refusal; whatever it throws, the call is admitted, and what it tells is durable. */
  async function carryOut(
    principal: Principal,
    units: Units,
    route: () => RoutedCall,
    { requestId }: RequestEvent,
  ): Promise<Message> {
    let endKey = () => {};
    try {
      const { method, idempotencyKeys, read } = route();
      const key = isWriting(method) ? readIdempotencyKey(idempotencyKeys) : undefined;
      const reading = attempt(read);
      if (key !== undefined) {
        const { callerId } = principal;
        const claim = { callerId, key, requestId, fingerprint: fingerprintOf(method, reading) };
        endKey = runningKeys.begin(claim);
        units.claim(claim);
      }
      units.takeQuota();
      if (reading instanceof Refusal) throw reading;
      const { message, violations } = reading;
      const answer = await dispatcher.invoke(
        method,
        message,
        { principal, execute: units.execute },
        violations,
      );
      await units.admit();
      return answer;
    } catch (error) {
      await units.admitRefused(error);
      throw error;
    } finally {
      endKey();
    }
  }

  /** For a call that was not admitted: how many were counted, if the store tells. */
  async function countedCalls(platform: PlatformPrincipal, nowMs: number): Promise<number | undefined> {
    const admission = { nowS: 0, quota: quotaClaim(platform, calendar, nowMs) };
    return store.execute({ admission }).then(
      ({ calls }) => calls,
      () => undefined,
    );
  }

  return {
    signed: async (call, event) => {
      let isUnderWay = false;
      try {
        checkTimestamp(readCredentials(call.credentials).timestamp, clock.nowMs());
        const body = await call.readBody();
        if (callsUnderWay >= callsUnderWayMax) throw unavailable('Too many calls are under way.');
        callsUnderWay += 1;
        isUnderWay = true;
        return await carryOutSigned(call, body, event);
      } catch (error) {
        if (!isUnderWay && !(error instanceof Refusal)) throw error;
        return { answer: asRefusal(error), isReplay: false };
      } finally {
        if (isUnderWay) callsUnderWay -= 1;
      }
    },
    identified: async (principal, call, event) => {
      const admission = { nowS: Math.floor(clock.nowMs() / 1000) };
      const units = createUnits(store, admission, () => new Refusal('QUOTA_EXCEEDED', 'There is no quota.'));
      return told(await carryOut(principal, units, () => call, event).catch(asRefusal), units);
    },
  };
}

/** An answer, and whether it is that to an earlier call. Who is told to come again is told so anew each time. */
function told(answer: Message | Refusal, units: Units): Outcome {
  if (answer instanceof Refusal && !isFinal(answer.reason)) return { answer, isReplay: false };
  const answeredTo = units.claimedBy();
  return { answer, isReplay: units.isReplay() || answeredTo !== undefined, answeredTo };
}

/** Whether a repetition of a call has to be told from a second one. */
function isWriting({ idempotency }: DescMethodUnary): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

function attempt(read: () => Reading): Reading | Refusal {
  try {
    return read();
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}
