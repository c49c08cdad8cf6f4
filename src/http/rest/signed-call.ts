import type { IncomingMessage } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import { claimedKey, credentialHeaders, type SentCredentials } from '../../api/credentials.ts';
import type { CallResult, RoutedCall, SignedCall } from '../../api/incoming-call.ts';
import type { Calls } from '../../api/pipeline.ts';
import type { RequestEvent } from '../../api/request-event.ts';
import { ApiError, toApiError } from '../../domain/reason.ts';
import { checkMediaType, readBody } from './body.ts';
import { type Answer, errorResponse, jsonAnswer } from './envelope.ts';
import { rateLimitHeaders } from './rate-limit-headers.ts';
import { parseRequestTarget, type RequestTarget } from './request-target.ts';
import { findRoute, type Route, readsJson } from './routes.ts';
import { sentHeader } from './sent-headers.ts';

/** What signed calls work with. */
export interface SignedCallDependencies {
  readonly calls: Calls;
  readonly routes: readonly Route[];
}

/** Answers a signed call. Rejects with ClientGone alone, when there is nobody to answer. */
export type SignedCalls = (request: IncomingMessage, event: RequestEvent) => Promise<Answer>;

/** FairQueue requests into calls, and what they came to into answers. */
export function createSignedCalls({ calls, routes }: SignedCallDependencies): SignedCalls {
  return async (request, event) => {
    let call: RestCall;
    try {
      call = new RestCall(request, routes);
    } catch (error) {
      return refused(error, event);
    }
    const outcome = await calls.signed(call, event);
    if (event.caller === undefined) event.claimedKey = claimedKey(call.credentials);
    try {
      return written(outcome, call, event);
    } catch (error) {
      return refused(error, event);
    }
  };
}

/** A request as a call, which knows its route once it was asked for it. */
class RestCall implements SignedCall {
  readonly method: string;
  readonly target: string;
  readonly credentials: SentCredentials;
  readonly #request: IncomingMessage;
  readonly #routes: readonly Route[];
  readonly #parsedTarget: RequestTarget;
  #route: Route | undefined;

  /** Throws BAD_REQUEST_TARGET. */
  constructor(request: IncomingMessage, routes: readonly Route[]) {
    const { method = '', url = '' } = request;
    this.method = method;
    this.target = url;
    this.#request = request;
    this.#routes = routes;
    this.#parsedTarget = parseRequestTarget(url);
    this.credentials = sentCredentials(request);
  }

  readBody(): Promise<Uint8Array> {
    return readBody(this.#request);
  }

  route(body: Uint8Array): RoutedCall {
    const route = findRoute(this.#routes, this.method, this.#parsedTarget);
    if (readsJson(route.body, body)) checkMediaType(this.#request);
    this.#route = route;
    return {
      method: route.method,
      idempotencyKeys: sentHeader(this.#request, 'idempotency-key'),
      isFreeOfQuota: route.isFreeOfQuota,
      read: () => route.read(this.#parsedTarget, body),
    };
  }

  /** The answer of the operation that was found. */
  answer(message: Message): Answer {
    return jsonAnswer(200, (this.#route as Route).write(message));
  }
}

/** The answer that tells what a call came to. */
function written(
  { answer, isReplay, answeredTo, limits }: CallResult,
  call: RestCall,
  event: RequestEvent,
): Answer {
  const told = answer instanceof ApiError ? refused(answer, event, answeredTo) : call.answer(answer);
  if (isReplay) told.headers['Idempotent-Replayed'] = 'true';
  if (limits !== undefined) Object.assign(told.headers, rateLimitHeaders(limits));
  return told;
}

/** The answer to a call that is refused; its body names the call that was answered so first, if that was another. */
function refused(error: unknown, event: RequestEvent, answeredTo = event.requestId): Answer {
  event.apiError = toApiError(error);
  return errorResponse(event.apiError, answeredTo);
}

function sentCredentials(request: IncomingMessage): SentCredentials {
  const sent = (name: string) => sentHeader(request, name.toLowerCase());
  return {
    apiKey: sent(credentialHeaders.apiKey),
    timestamp: sent(credentialHeaders.timestamp),
    nonce: sent(credentialHeaders.nonce),
    signature: sent(credentialHeaders.signature),
  };
}
