import type { IncomingMessage } from 'node:http';
import type { RequestEvent } from '../../api/request-event.ts';
import { ApiError, toApiError, unavailable } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { errorResponse, type HttpResponse, jsonResponse } from './envelope.ts';
import {
  evidenceRoute,
  logRoute,
  type OpenRoute,
  type PublicLog,
  type SharedEvidence,
} from './log-routes.ts';
import { createPages } from './pages.ts';

/** The dependencies of the open routes. */
export interface OpenRouteDependencies {
  /** The OpenAPI document. */
  readonly openApi: Uint8Array;
  /** The members of /version. */
  readonly version: {
    readonly version: string;
    /** 40 hex digits; empty if unknown. */
    readonly commit: string;
    /** RFC 3339. */
    readonly startedAt: string;
  };
  readonly readiness: Pick<Readiness, 'check'>;
  readonly log: PublicLog;
  readonly evidence: SharedEvidence;
  /** docs/verify.html. */
  readonly verifierPage: Buffer;
}

/** Responds to a request that needs no signature; undefined for any other request. */
export type OpenRoutes = (request: IncomingMessage, event: RequestEvent) => Promise<HttpResponse> | undefined;

const probes: readonly string[] = ['/healthz', '/readyz'];
const methods = ['GET', 'HEAD'];

/** The routes without signature: the OpenAPI document, health and version, the evidence log, and links to evidence. */
export function createOpenRoutes(dependencies: OpenRouteDependencies): OpenRoutes {
  const { openApi, version, readiness, log, evidence, verifierPage } = dependencies;

  async function ready(): Promise<HttpResponse> {
    const faults = await readiness.check();
    if (faults.length === 0) return jsonResponse(200, { status: 'ok' });
    // Most faults only by name: the operator finds the details in the log.
    const failing = faults.map(({ part, fault, isPublic }) => (isPublic ? `${part} (${fault})` : part));
    throw unavailable(`Not ready: ${failing.join(', ')}.`);
  }

  const responders = new Map<string, OpenRoute['respond']>([
    [
      '/openapi.yaml',
      () => ({ status: 200, headers: { 'Content-Type': 'application/yaml' }, body: openApi }),
    ],
    ['/healthz', () => jsonResponse(200, { status: 'ok' })],
    ['/readyz', ready],
    ['/version', () => jsonResponse(200, version)],
    ...createPages({ verifierPage, log }),
  ]);

  function routeOf(path: string): OpenRoute | undefined {
    const respond = responders.get(path);
    if (respond !== undefined) return { operation: path, respond };
    return logRoute(path, log) ?? evidenceRoute(path, evidence);
  }

  return (request, event) => {
    const { url = '' } = request;
    const queryAt = url.indexOf('?');
    const path = queryAt < 0 ? url : url.slice(0, queryAt);
    // Other methods at the root are signed calls.
    const route = path === '/' && !methods.includes(request.method ?? '') ? undefined : routeOf(path);
    if (route === undefined) return undefined;
    event.operation = route.operation;
    event.isProbe = probes.includes(path);
    event.isForAnybody = route.isForAnybody ?? false;
    return respondTo(request, event, route);
  };
}

async function respondTo(
  request: IncomingMessage,
  event: RequestEvent,
  { headers, respond }: OpenRoute,
): Promise<HttpResponse> {
  const response = await checkAndRespond(request, respond).catch((error) => {
    event.apiError = toApiError(error);
    return errorResponse(event.apiError, event.requestId);
  });
  Object.assign(response.headers, headers);
  return response;
}

async function checkAndRespond(
  { method = '', url = '' }: IncomingMessage,
  respond: OpenRoute['respond'],
): Promise<HttpResponse> {
  if (!methods.includes(method)) {
    throw new ApiError('METHOD_NOT_ALLOWED', 'This route takes GET and HEAD.', { allow: methods });
  }
  if (/\?./.test(url)) throw new ApiError('VALIDATION_FAILED', 'This route takes no query parameters.');
  return respond();
}
