import type { IncomingMessage } from 'node:http';
import type { RequestEvent } from '../../api/call-observer.ts';
import { ApiError, toApiError, unavailable } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { type AccessDesk, createAccessRoutes } from './access-routes.ts';
import { createLayout, type ReadFile } from './docs/layout.ts';
import { createSite, homePath, type Responder } from './docs/site.ts';
import { errorResponse, type HttpResponse, jsonResponse, jsonType, readBody } from './http-message.ts';
import { createFilePage, logPage } from './pages.ts';

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
  readonly access: AccessDesk;
  /** Reads the files that pages are made of. */
  readonly readFile: ReadFile;
  readonly notifications: Notifications;
}

/** The published part of the evidence log. */
export interface PublicLog {
  /** The newest checkpoint, a signed note; undefined before the first one. */
  checkpoint(): Promise<string | undefined>;
  /** The keys that verify it, in the format of signed notes. */
  verifierKeys(): readonly string[];
  /** The bytes of a tile by its path after `tile/`; undefined if there is none. */
  tile(path: string): Promise<Uint8Array | undefined>;
}

/** Evidence that its owner shares by a link. */
export interface SharedEvidence {
  /** The evidence as JSON and a file name for it; undefined if the link is not valid. Throws ApiError. */
  open(token: string): Promise<{ readonly json: string; readonly file: string } | undefined>;
}

/** The notifications of the payment provider. */
export interface Notifications {
  readonly method: 'GET' | 'POST';
  /** Verifies and stores a notification. Throws ApiError. */
  take(sent: {
    /** The query of the target; '' if there is none. It can hold the secret that authenticates the notification. */
    readonly query: string;
    readonly headers: NodeJS.Dict<string[]>;
    readonly body: Uint8Array;
  }): Promise<void>;
}

/** Responds to a request that needs no signature; undefined for any other request. */
export type OpenRoutes = (request: IncomingMessage, event: RequestEvent) => Promise<HttpResponse> | undefined;

/** A route without a query. */
interface OpenRoute {
  /** Its name in log and metrics, without the token of a link. */
  readonly operation: string;
  /** GET and HEAD by default. */
  readonly methods?: readonly string[];
  /** `RequestEvent.mayBeUnavailable`. */
  readonly mayBeUnavailable?: boolean;
  /** Headers of all its responses, errors included. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Throws ApiError. */
  readonly respond: (request: IncomingMessage, event: RequestEvent) => HttpResponse | Promise<HttpResponse>;
}

/** Where the paths of signed calls begin. No open route is there. */
const operationsPath = '/api/';
/** The path of evidence links; the token follows. */
export const linkPath = '/evidence/';
/** The path to which the payment provider sends its notifications. */
const notificationPath = '/payment/notifications';
const probes: readonly string[] = ['/healthz', '/readyz'];
const reading = ['GET', 'HEAD'];

/** The name of all pages of the documentation in log and metrics. */
const docsOperation = '/docs';

/** Lets a page of any site read the log. */
const forBrowsers = { 'Access-Control-Allow-Origin': '*' };
const mutable = { 'Content-Type': 'text/plain; charset=utf-8', 'Cache-Control': 'no-cache' };
/** A tile never changes under its name. */
const immutable = {
  'Content-Type': 'application/octet-stream',
  'Cache-Control': 'public, max-age=31536000, immutable',
};

/**
 * The routes without signature: the documentation, health and version, the evidence log, links to evidence, the access desk, and
 * notifications of the payment provider.
 */
export function createOpenRoutes(dependencies: OpenRouteDependencies): OpenRoutes {
  const { openApi, version, readiness, log, evidence, access, readFile, notifications } = dependencies;
  const layout = createLayout(readFile);
  const accessRoute = createAccessRoutes(access, layout);

  async function ready(): Promise<HttpResponse> {
    const faults = await readiness.check();
    if (faults.length === 0) return jsonResponse(200, { status: 'ok' });
    // Most faults only by name: the operator finds the details in the log.
    const failing = faults.map(({ part, fault, isPublic }) => (isPublic ? `${part} (${fault})` : part));
    throw unavailable(`Not ready: ${failing.join(', ')}.`);
  }

  const redirect = (status: number, path: string) => () => ({
    status,
    headers: { Location: path },
    body: '',
  });
  const site = createSite(readFile, layout);
  const routes = new Map<string, OpenRoute>(
    site.map(([path, respond]) => [path, { operation: docsOperation, respond }]),
  );
  const others: readonly (readonly [string, Responder])[] = [
    ['/', redirect(302, homePath)],
    ['/docs', redirect(308, homePath)],
    [
      '/openapi.yaml',
      () => ({ status: 200, headers: { 'Content-Type': 'application/yaml' }, body: openApi }),
    ],
    ['/docs/try', createFilePage(readFile('docs/try.html'))],
    ['/verify', createFilePage(readFile('docs/verify.html'))],
    ['/log', redirect(308, '/log/')],
    ['/log/', async () => layout(logPage(log.verifierKeys(), await log.checkpoint()))],
    ['/healthz', () => jsonResponse(200, { status: 'ok' })],
    ['/readyz', ready],
    ['/version', () => jsonResponse(200, version)],
  ];
  for (const [path, respond] of others) routes.set(path, { operation: path, respond });

  function routeOf(path: string): OpenRoute | undefined {
    const known = routes.get(path) ?? logRoute(path, log) ?? evidenceRoute(path, evidence);
    return known ?? accessRoute(path) ?? unknownPage(path);
  }

  return (request, event) => {
    const { method = '', url = '' } = request;
    const queryAt = url.indexOf('?');
    const path = queryAt < 0 ? url : url.slice(0, queryAt);
    if (path.startsWith(operationsPath)) return undefined;
    // Notifications that are sent with GET have their data in the query.
    if (path === notificationPath && (path === url || notifications.method === 'GET'))
      return respondToNotification(request, event, notifications);
    // Other methods at the root are signed calls.
    const route = path === '/' && !reading.includes(method) ? undefined : routeOf(path);
    if (route === undefined) return undefined;
    event.operation = route.operation;
    event.isProbe = probes.includes(path);
    event.mayBeUnavailable = route.mayBeUnavailable ?? false;
    return respondTo(request, event, route);
  };
}

async function respondTo(
  request: IncomingMessage,
  event: RequestEvent,
  { methods = reading, headers, respond }: OpenRoute,
): Promise<HttpResponse> {
  const { method = '', url = '' } = request;
  let response: HttpResponse;
  try {
    if (!methods.includes(method)) {
      const taken = `${methods.slice(0, -1).join(', ')} and ${methods.at(-1)}`;
      throw new ApiError('METHOD_NOT_ALLOWED', `This route takes ${taken}.`, { allow: methods });
    }
    if (/\?./.test(url)) throw new ApiError('VALIDATION_FAILED', 'This route takes no query parameters.');
    response = await respond(request, event);
  } catch (error) {
    event.apiError = toApiError(error);
    response = errorResponse(event.apiError, event.requestId);
  }
  Object.assign(response.headers, headers);
  return response;
}

/** Responds to a notification as soon as it is stored, before it is processed. */
async function respondToNotification(
  request: IncomingMessage,
  event: RequestEvent,
  { method, take }: Notifications,
): Promise<HttpResponse> {
  event.operation = 'payment notification';
  if (request.method !== method) {
    throw new ApiError('METHOD_NOT_ALLOWED', `This route takes ${method}.`, { allow: [method] });
  }
  const { url = '', headersDistinct: headers } = request;
  const query = url.slice(notificationPath.length + 1);
  try {
    await take({ query, headers, body: await readBody(request) });
  } catch (error) {
    event.isForOperator = error instanceof ApiError && error.reason === 'VALIDATION_FAILED';
    throw error;
  }
  return jsonResponse(200, { received: true });
}

/** The route of a path below /log/ (C2SP tlog-tiles); undefined for any other path. */
function logRoute(path: string, log: PublicLog): OpenRoute | undefined {
  const below = after('/log/', path);
  if (below === undefined) return undefined;
  const route = { operation: path, headers: forBrowsers };
  if (below === 'checkpoint') return { ...route, respond: async () => textResponse(await log.checkpoint()) };
  if (below === 'vkey') {
    return { ...route, respond: () => textResponse(`${log.verifierKeys().join('\n')}\n`) };
  }
  const tile = after('tile/', below);
  if (tile === undefined) return { ...route, operation: '/log', respond: notPublished };
  const respond = async (): Promise<HttpResponse> => {
    const body = (await log.tile(tile)) ?? notPublished();
    return { status: 200, headers: { ...immutable }, body };
  };
  return { ...route, operation: '/log/tile', mayBeUnavailable: true, respond };
}

/** The route of an evidence link; undefined for any other path. */
function evidenceRoute(path: string, shared: SharedEvidence): OpenRoute | undefined {
  const token = after(linkPath, path);
  if (token === undefined) return undefined;
  const respond = async (): Promise<HttpResponse> => {
    const evidence = await shared.open(token);
    if (evidence === undefined) {
      throw new ApiError(
        'NOT_FOUND',
        'This link has expired, was revoked, or is incomplete. Ask the person who sent it for a new one.',
      );
    }
    const { json, file } = evidence;
    const disposition = `attachment; filename="${file}"`;
    return {
      status: 200,
      headers: { 'Content-Type': jsonType, 'Content-Disposition': disposition },
      body: json,
    };
  };
  return { operation: '/evidence', mayBeUnavailable: true, respond };
}

/** The route of a page that does not exist; undefined for a path that is not below /docs/. */
function unknownPage(path: string): OpenRoute | undefined {
  if (!path.startsWith(homePath)) return undefined;
  const respond = () => {
    throw new ApiError('NOT_FOUND', `There is no such page; ${homePath} lists them all.`);
  };
  return { operation: docsOperation, respond };
}

function textResponse(body: string | undefined): HttpResponse {
  return { status: 200, headers: { ...mutable }, body: body ?? notPublished() };
}

function notPublished(): never {
  throw new ApiError('NOT_FOUND', 'Nothing of that name is published of the evidence log.');
}

/** The part of a path after a prefix; undefined if it does not begin with the prefix. */
function after(prefix: string, path: string): string | undefined {
  return path.startsWith(prefix) ? path.slice(prefix.length) : undefined;
}
