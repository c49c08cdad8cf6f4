import type { IncomingMessage } from 'node:http';
import type { Admission, QuotaStanding } from '../access/admission.ts';
import { credentialHeaders, type SentCredentials } from '../access/credentials.ts';
import type { Platform } from '../access/principal.ts';
import type { RateStanding } from '../access/rate-limit.ts';
import { asRefusal, Refusal } from '../domain/reason.ts';
import type { Trace } from '../observe/trace.ts';
import type { Dispatcher } from '../rpc/dispatcher.ts';
import { ClientGone, checkMediaType, readBody } from './body.ts';
import { type Answer, jsonAnswer, refusalAnswer } from './envelope.ts';
import { rateLimitHeaders } from './rate-limit-headers.ts';
import { parseRequestTarget } from './request-target.ts';
import { findRoute, type Route } from './routes.ts';

export interface SignedCallDependencies {
  readonly admission: Admission;
  readonly dispatcher: Dispatcher;
  readonly routes: readonly Route[];
  /** The store's barrier: nothing is answered before it. */
  readonly durable: () => Promise<void>;
}

/** How far admission has come with a call. */
interface Progress {
  platform?: Platform;
  rate?: RateStanding;
  quota?: QuotaStanding;
}

/** Answers a signed call. Rejects with ClientGone alone, when there is nobody to answer. */
export type SignedCalls = (request: IncomingMessage, trace: Trace) => Promise<Answer>;

/** Takes calls through the checks in their documented order and to their operation. */
export function createSignedCalls({
  admission,
  dispatcher,
  routes,
  durable,
}: SignedCallDependencies): SignedCalls {
  async function carryOut(request: IncomingMessage, trace: Trace, progress: Progress): Promise<Answer> {
    const { method = '', url: rawTarget = '' } = request;
    const target = parseRequestTarget(rawTarget);
    const credentials = admission.credentials(sentCredentials(request.headersDistinct));
    const body = await readBody(request);
    const platform = await admission.identify(credentials, { method, target: rawTarget, body });
    progress.platform = platform;
    trace.caller = platform.caller;

    progress.rate = admission.takeRate(platform);
    if (!progress.rate.allowed) throw rateLimited(progress.rate);
    const { route, path } = findRoute(routes, method, target);
    trace.operation = `${route.method.parent.typeName}/${route.method.name}`;
    if (route.hasBody) checkMediaType(request.headersDistinct);
    progress.quota = await admission.takeQuota(platform);
    if (!progress.quota.allowed) throw quotaExceeded(progress.quota);

    const { message, violations } = route.read(path, target.query, body);
    const call = { requestId: trace.requestId, principal: platform };
    return jsonAnswer(200, route.write(await dispatcher.invoke(route.method, message, call, violations)));
  }

  async function standings({ platform, rate, quota }: Progress): Promise<Record<string, string>> {
    if (platform === undefined || rate === undefined) return {};
    return rateLimitHeaders(rate, quota ?? (await admission.quota(platform)));
  }

  function refuse(error: unknown, trace: Trace): Answer {
    if (error instanceof ClientGone) throw error;
    trace.refusal = asRefusal(error);
    return refusalAnswer(trace.refusal, trace.requestId);
  }

  return async (request, trace) => {
    const progress: Progress = {};
    try {
      const answer = await carryOut(request, trace, progress).catch((error) => refuse(error, trace));
      const headers = await standings(progress);
      const { platform, quota } = progress;
      if (answer.status >= 500 && platform && quota?.allowed) await admission.giveBack(platform, quota);
      await durable();
      return { ...answer, headers: { ...answer.headers, ...headers } };
    } catch (error) {
      return refuse(error, trace);
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

function rateLimited({ callsPerSecond, retryAfterS }: RateStanding): Refusal {
  return new Refusal('RATE_LIMITED', `At most ${callsPerSecond} calls a second.`, { retryAfterS });
}

function quotaExceeded({ limit, month, resetS }: QuotaStanding): Refusal {
  return new Refusal('QUOTA_EXCEEDED', `All ${limit} calls of ${month} are used.`, { retryAfterS: resetS });
}
