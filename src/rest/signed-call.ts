import type { IncomingMessage } from 'node:http';
import { credentialHeaders, type SentCredentials } from '../calls/credentials.ts';
import type { Outcome, RoutedCall } from '../calls/incoming-call.ts';
import type { Calls } from '../calls/pipeline.ts';
import { asRefusal, Refusal } from '../domain/reason.ts';
import type { RequestEvent } from '../observe/request-event.ts';
import { checkMediaType, readBody } from './body.ts';
import { type Answer, jsonAnswer, refusalAnswer } from './envelope.ts';
import { rateLimitHeaders } from './rate-limit-headers.ts';
import { parseRequestTarget, type RequestTarget } from './request-target.ts';
import { findRoute, type Route, readsJson } from './routes.ts';

/** What signed calls work with. */
export interface SignedCallDependencies {
  readonly calls: Calls;
  readonly routes: readonly Route[];
}

/** Answers a signed call. Rejects with ClientGone alone, when there is nobody to answer. */
export type SignedCalls = (request: IncomingMessage, event: RequestEvent) => Promise<Answer>;

/** Turns requests into calls, and what they came to into answers. */
export function createSignedCalls({ calls, routes }: SignedCallDependencies): SignedCalls {
  return async (request, event) => {
    const { method = '', url: rawTarget = '', headersDistinct: headers } = request;
    const refuse = (error: unknown, answeredTo = event.requestId): Answer => {
      event.refusal = asRefusal(error);
      return refusalAnswer(event.refusal, answeredTo);
    };
    let target: RequestTarget;
    try {
      target = parseRequestTarget(rawTarget);
    } catch (error) {
      return refuse(error);
    }
    let route: Route | undefined;
    const routed = (body: Uint8Array): RoutedCall => {
      const found = findRoute(routes, method, target);
      if (readsJson(found.route.body, body)) checkMediaType(headers);
      route = found.route;
      return {
        method: found.route.method,
        idempotencyKeys: headers['idempotency-key'] ?? [],
        read: () => found.route.read(found.path, target.query, body),
      };
    };
    const credentials = sentCredentials(headers);
    const outcome = await calls.signed(
      { method, target: rawTarget, credentials, readBody: () => readBody(request), route: routed },
      event,
    );
    try {
      return withLimits(written(outcome, route, refuse), outcome);
    } catch (error) {
      return refuse(error);
    }
  };
}

/** The answer that tells what a call came to. */
function written(
  { answer, isReplay, answeredTo }: Outcome,
  route: Route | undefined,
  refuse: (refusal: Refusal, answeredTo?: string) => Answer,
): Answer {
  const told =
    answer instanceof Refusal ? refuse(answer, answeredTo) : jsonAnswer(200, (route as Route).write(answer));
  return isReplay ? { ...told, headers: { ...told.headers, 'Idempotent-Replayed': 'true' } } : told;
}

/** Adds what is left of the limits, if that is known. */
function withLimits(answer: Answer, { limits }: Outcome): Answer {
  if (limits === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, ...rateLimitHeaders(limits) } };
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
