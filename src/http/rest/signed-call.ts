import type { IncomingMessage } from 'node:http';
import type { Message } from '@bufbuild/protobuf';
import type { Limits } from '../../api/admission.ts';
import { claimedKey, credentialHeaders, type SentCredentials } from '../../api/authentication.ts';
import type { RequestEvent } from '../../api/call-observer.ts';
import type { CallResult, Calls, RoutedCall, SignedCall } from '../../api/pipeline.ts';
import { ApiError, toApiError } from '../../domain/reason.ts';
import {
  checkMediaType,
  errorResponse,
  type HttpResponse,
  jsonResponse,
  parseRequestTarget,
  type RequestTarget,
  readBody,
  sentHeader,
} from './http-message.ts';
import { findRoute, type Route, readsJson } from './routes.ts';

/** Responds to a signed call. Throws BAD_REQUEST_TARGET and ClientGone. */
export type SignedCalls = (request: IncomingMessage, event: RequestEvent) => Promise<HttpResponse>;

export function createSignedCalls(calls: Calls, routes: readonly Route[]): SignedCalls {
  return async (request, event) => {
    const call = new RestCall(request, routes);
    const result = await calls.signed(call, event);
    if (event.caller === undefined) event.claimedKey = claimedKey(call.credentials);
    return responseOf(result, call, event);
  };
}

/** A REST request as a call of the pipeline. */
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

  /** The response of the routed operation. */
  respond(message: Message): HttpResponse {
    return jsonResponse(200, (this.#route as Route).write(message));
  }
}

function responseOf(
  { response, isReplay, originalRequestId, limits }: CallResult,
  call: RestCall,
  event: RequestEvent,
): HttpResponse {
  const http =
    response instanceof ApiError ? rejected(response, event, originalRequestId) : call.respond(response);
  if (isReplay) http.headers['Idempotent-Replayed'] = 'true';
  if (limits !== undefined) Object.assign(http.headers, rateLimitHeaders(limits));
  return http;
}

/**
 * The RateLimit-Policy and RateLimit headers (IETF draft-ietf-httpapi-ratelimit-headers): for each policy its quota q and
 * window w, the remaining calls r and the seconds t until it resets. A caller without quota has no monthly policy.
 */
export function rateLimitHeaders({ rate, quota }: Limits): Record<string, string> {
  const policy = `"qps";q=${rate.callsPerSecond};w=1`;
  const left = `"qps";r=${rate.remaining};t=${rate.resetS}`;
  if (quota.limit === undefined) return { 'RateLimit-Policy': policy, RateLimit: left };
  return {
    'RateLimit-Policy': `${policy}, "monthly";q=${quota.limit};w=${quota.monthS}`,
    RateLimit: `${left}, "monthly";r=${quota.remaining};t=${quota.resetS}`,
  };
}

/** The response for an error. The body of a replay has the request id of the original call. */
function rejected(error: unknown, event: RequestEvent, requestId = event.requestId): HttpResponse {
  event.apiError = toApiError(error);
  return errorResponse(event.apiError, requestId);
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
