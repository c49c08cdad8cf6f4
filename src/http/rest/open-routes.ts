import type { IncomingMessage } from 'node:http';
import type { RequestEvent } from '../../api/request-event.ts';
import { ApiError, toApiError, unavailable } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { type Answer, errorResponse, jsonAnswer } from './envelope.ts';
import {
  evidenceRoute,
  logRoute,
  type OpenRoute,
  type PublicLog,
  type SharedEvidence,
} from './log-routes.ts';
import { createPages } from './pages.ts';

/** What the routes answer that need no signature. */
export interface OpenRouteDependencies {
  /** The OpenAPI document. */
  readonly openApi: Uint8Array;
  /** Which process answers: the members of /version. */
  readonly version: {
    readonly version: string;
    /** 40 hex digits; empty where it is not known. */
    readonly commit: string;
    /** RFC 3339. */
    readonly startedAt: string;
  };
  readonly readiness: Pick<Readiness, 'check'>;
  readonly log: PublicLog;
  readonly evidence: SharedEvidence;
  /** The page on which people verify evidence. */
  readonly verifierPage: Buffer;
}

/** Finds how a request is answered that anybody may make; undefined for any other. */
export type OpenRoutes = (request: IncomingMessage, event: RequestEvent) => Promise<Answer> | undefined;

/** The paths that those ask who watch over the process, every few seconds. */
const probes: readonly string[] = ['/healthz', '/readyz'];
const methods = ['GET', 'HEAD'];

/** The routes without signature: the OpenAPI document, health and version, the evidence log, and links to evidence. */
export function createOpenRoutes(dependencies: OpenRouteDependencies): OpenRoutes {
  const { openApi, version, readiness, log, evidence, verifierPage } = dependencies;

  async function ready(): Promise<Answer> {
    const faults = await readiness.check();
    if (faults.length === 0) return jsonAnswer(200, { status: 'ok' });
    // Most by their names alone: what is wrong with them is for the operator, who has it in the log.
    const failing = faults.map(({ part, fault, isPublic }) => (isPublic ? `${part} (${fault})` : part));
    throw unavailable(`Not ready: ${failing.join(', ')}.`);
  }

  const answers = new Map<string, OpenRoute['answer']>([
    [
      '/openapi.yaml',
      () => ({ status: 200, headers: { 'Content-Type': 'application/yaml' }, body: openApi }),
    ],
    ['/healthz', () => jsonAnswer(200, { status: 'ok' })],
    ['/readyz', ready],
    ['/version', () => jsonAnswer(200, version)],
    ...createPages({ verifierPage, log }),
  ]);

  function routeOf(path: string): OpenRoute | undefined {
    const answer = answers.get(path);
    if (answer !== undefined) return { operation: path, answer };
    return logRoute(path, log) ?? evidenceRoute(path, evidence);
  }

  return (request, event) => {
    const { url = '' } = request;
    const queryAt = url.indexOf('?');
    const path = queryAt < 0 ? url : url.slice(0, queryAt);
    // Other methods at the root are calls like any other.
    const route = path === '/' && !methods.includes(request.method ?? '') ? undefined : routeOf(path);
    if (route === undefined) return undefined;
    event.operation = route.operation;
    event.isProbe = probes.includes(path);
    event.isForAnybody = route.isForAnybody ?? false;
    return answerTo(request, event, route);
  };
}

/** Answers a request, or refuses it: either with the headers of its route. */
async function answerTo(
  request: IncomingMessage,
  event: RequestEvent,
  { headers, answer }: OpenRoute,
): Promise<Answer> {
  const told = await answered(request, answer).catch((error) => {
    event.apiError = toApiError(error);
    return errorResponse(event.apiError, event.requestId);
  });
  Object.assign(told.headers, headers);
  return told;
}

async function answered(
  { method = '', url = '' }: IncomingMessage,
  answer: OpenRoute['answer'],
): Promise<Answer> {
  if (!methods.includes(method)) {
    throw new ApiError('METHOD_NOT_ALLOWED', 'This route takes GET and HEAD.', { allow: methods });
  }
  if (/\?./.test(url)) throw new ApiError('VALIDATION_FAILED', 'This route takes no query parameters.');
  return answer();
}
