import type { IncomingMessage } from 'node:http';
import type { Admission, QuotaStanding } from '../access/admission.ts';
import { credentialHeaders, type SentCredentials } from '../access/credentials.ts';
import type { Idempotency, IdempotentCall, KeptAnswer } from '../access/idempotency.ts';
import type { Platform } from '../access/principal.ts';
import type { RateStanding } from '../access/rate-limit.ts';
import { asRefusal, Refusal, unavailable } from '../domain/reason.ts';
import type { Trace } from '../observe/trace.ts';
import type { Dispatcher } from '../rpc/dispatcher.ts';
import { ClientGone, checkMediaType, readBody } from './body.ts';
import { type Answer, jsonAnswer, jsonType, refusalAnswer } from './envelope.ts';
import { rateLimitHeaders } from './rate-limit-headers.ts';
import { parseRequestTarget } from './request-target.ts';
import { findRoute, type Route, readsJson } from './routes.ts';

/** What signed calls work with. */
export interface SignedCallDependencies {
  readonly admission: Admission;
  readonly idempotency: Idempotency;
  readonly dispatcher: Dispatcher;
  readonly routes: readonly Route[];
  /** The store's barrier: nothing is answered before it. */
  readonly durable: () => Promise<void>;
}

/** How far admission has come with a call. */
interface Progress {
  platform?: Platform;
  rate?: RateStanding;
  idempotent?: IdempotentCall;
  quota?: QuotaStanding;
  /** Whether the call counts among those that are carried out. */
  underWay?: boolean;
  /** Whether the call reached its operation. */
  reached?: boolean;
  /** Whether the answer is durable, whatever becomes of what is booked with it. */
  stands?: boolean;
}

/** Answers a signed call. Rejects with ClientGone alone, when there is nobody to answer. */
export type SignedCalls = (request: IncomingMessage, trace: Trace) => Promise<Answer>;

/** Calls carried out at the same time; what comes on top is refused at once. Requests still arriving do not count. */
const callsUnderWayMax = 2_000;

/** Takes calls through the checks in their documented order and to their operation. */
export function createSignedCalls(dependencies: SignedCallDependencies): SignedCalls {
  const { admission, idempotency, dispatcher, routes, durable } = dependencies;

  let callsUnderWay = 0;

  async function carryOut(request: IncomingMessage, trace: Trace, progress: Progress): Promise<Answer> {
    const { method = '', url: rawTarget = '', headersDistinct: headers } = request;
    const target = parseRequestTarget(rawTarget);
    const credentials = admission.credentials(sentCredentials(headers));
    const body = await readBody(request);
    if (callsUnderWay >= callsUnderWayMax) throw unavailable('Too many calls are under way.');
    callsUnderWay += 1;
    progress.underWay = true;
    const signed = { method, target: rawTarget, body };
    const platform = await admission.identify(credentials, signed);
    progress.platform = platform;
    trace.caller = platform.caller;

    progress.rate = admission.takeRate(platform);
    if (!progress.rate.allowed) throw rateLimited(progress.rate);
    const { route, path } = findRoute(routes, method, target);
    trace.operation = `${route.method.parent.typeName}/${route.method.name}`;
    if (readsJson(route.body, body)) checkMediaType(headers);
    const sentKeys = method === 'POST' ? (headers['idempotency-key'] ?? []) : [];
    progress.idempotent = await idempotency.claim(platform, sentKeys, signed);
    if (progress.idempotent.replay) return replayed(progress.idempotent.replay);
    progress.quota = await admission.takeQuota(platform);
    if (!progress.quota.allowed) throw quotaExceeded(progress.quota);

    const { message, violations } = route.read(path, target.query, body);
    progress.reached = true;
    const { key: idempotencyKey } = progress.idempotent;
    const stands = () => {
      progress.stands = true;
    };
    const call = { requestId: trace.requestId, principal: platform, idempotencyKey, stands };
    return jsonAnswer(200, route.write(await dispatcher.invoke(route.method, message, call, violations)));
  }

  /** Books what the answer means for the quota and the idempotency key. */
  async function settle({ status, body }: Answer, progress: Progress): Promise<void> {
    const { platform, idempotent, quota, reached } = progress;
    if (status >= 500) delete progress.quota;
    try {
      if (platform && quota?.allowed) await admission.endCall(platform, quota, status < 500);
    } finally {
      await idempotent?.settle(reached ? { status, body: String(body) } : undefined);
    }
  }

  async function standings({ platform, rate, quota }: Progress): Promise<Record<string, string>> {
    if (platform === undefined || rate === undefined) return {};
    return rateLimitHeaders(rate, quota ?? (await admission.quota(platform)));
  }

  /** Adds where the limits stand; what is told is durable. */
  async function conclude(answer: Answer, progress: Progress): Promise<Answer> {
    const headers = await standings(progress);
    await durable();
    return { ...answer, headers: { ...answer.headers, ...headers } };
  }

  function refuse(error: unknown, trace: Trace): Answer {
    if (error instanceof ClientGone) throw error;
    trace.refusal = asRefusal(error);
    return refusalAnswer(trace.refusal, trace.requestId);
  }

  return async (request, trace) => {
    const progress: Progress = {};
    let answered: Answer | undefined;
    try {
      answered = await carryOut(request, trace, progress).catch((error) => refuse(error, trace));
      await settle(answered, progress);
      return await conclude(answered, progress);
    } catch (error) {
      const answer = progress.stands && answered ? answered : refuse(error, trace);
      // The commit that counted the call is undone, so the quota stands where it stood.
      delete progress.quota;
      return await conclude(answer, progress).catch(() => answer);
    } finally {
      if (progress.underWay) callsUnderWay -= 1;
    }
  };
}

function sentCredentials(headers: NodeJS.Dict<string[]>): SentCredentials {
  const sent = (name: string) => headers[name.toLowerCase()] ?? [];
  return {
    apiKey: sent(credentialHeaders.apiKey),
    timestamp: sent(credentialHeaders.timestamp),
    nonce: sent(credentialHeaders.nonce),
    signature: sent(credentialHeaders.signature),
  };
}

function replayed({ status, body }: KeptAnswer): Answer {
  return { status, headers: { 'Content-Type': jsonType, 'Idempotent-Replayed': 'true' }, body };
}

function rateLimited({ callsPerSecond, retryAfterS }: RateStanding): Refusal {
  return new Refusal('RATE_LIMITED', `At most ${callsPerSecond} calls a second.`, { retryAfterS });
}

function quotaExceeded({ limit, month, resetS }: QuotaStanding): Refusal {
  return new Refusal('QUOTA_EXCEEDED', `All ${limit} calls of ${month} are used.`, { retryAfterS: resetS });
}
