import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { Socket } from 'node:net';
import { type CallObserver, within } from '../../api/call-observer.ts';
import type { RequestEvent } from '../../api/request-event.ts';
import { type ApiError, cancelled, cutOffError, toApiError } from '../../domain/reason.ts';
import type { ClientOf } from '../listen/clients.ts';
import { CountedResponse, endWith } from '../listen/counted-response.ts';
import type { OpenCall, OpenCalls, OpenConnection } from '../listen/open-calls.ts';
import { framingFault } from '../listen/request-head.ts';
import { shakeHandsFirst, type TlsFront } from '../listen/tls-front.ts';
import { bodyRejected, ClientGone } from './body.ts';
import { type Answer, errorResponse } from './envelope.ts';
import { checkHead, endWithAnswer, parserError, requestLimits } from './http-rules.ts';
import { isNotification, type Notifications, notificationCall } from './notification-call.ts';
import type { OpenRoutes } from './open-routes.ts';
import type { SignedCalls } from './signed-call.ts';
import { endBehindBody, hasSmallBody, skipBody } from './unread-body.ts';

/** What the public listener works with. */
export interface PublicListenerDependencies {
  readonly signedCalls: SignedCalls;
  readonly notifications: Notifications;
  readonly openRoutes: OpenRoutes;
  readonly clientOf: ClientOf;
  /** What connections are secured with first; undefined for plain HTTP. */
  readonly tls: TlsFront | undefined;
  readonly observer: CallObserver;
  readonly openCalls: OpenCalls;
}

/** A connection that was accepted. */
interface Connection {
  readonly socket: Socket;
  readonly open: OpenConnection;
  /** The request that came last. */
  latest?: IncomingMessage;
  /** Why nothing more can be read. */
  broken?: ApiError;
}

/** A request that is answered on its connection. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: CountedResponse;
  readonly connection: Connection;
  readonly call: OpenCall;
  readonly event: RequestEvent;
}

/** Connections at the same time; what comes on top is closed at once. Twice the calls that are carried out. */
const connectionsMax = 4_000;
/** Requests of a connection that are not answered yet; with one more it is closed. */
const requestsAheadMax = 32;
/** How long a client may take over its headers and between two requests, in milliseconds. */
const timeouts = { headersMs: 15_000, keepAliveMs: 60_000, checkEveryMs: 5_000 } as const;

/** The HTTP/1.1 server of external platforms. It does not listen yet. */
export function createPublicListener(dependencies: PublicListenerDependencies): Server {
  const { signedCalls, notifications, openRoutes, clientOf, tls, observer, openCalls } = dependencies;
  const server = createServer({
    // A request without Host is answered here, in the envelope.
    requireHostHeader: false,
    maxHeaderSize: requestLimits.headBytes,
    headersTimeout: timeouts.headersMs,
    requestTimeout: requestLimits.wholeMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
    ServerResponse: CountedResponse,
  });
  server.maxConnections = connectionsMax;
  // Not in Node's types: else it ends a connection with its client's half, and calls under way are not answered.
  Object.assign(server, { httpAllowHalfOpen: true });
  server.maxHeadersCount = requestLimits.headers;
  /** Connections on which nothing more is read: they are closed behind the answer that says so. */
  const misframed = new WeakSet<Socket>();
  const connections = new WeakMap<Socket, Connection>();

  function connect(socket: Socket): void {
    // Whoever is gone by the time that it is logged has no address any more.
    clientOf(socket, {});
    const open = openCalls.connect({
      callsMax: requestsAheadMax,
      listener: 'public',
      clientOf: (headers) => clientOf(socket, headers),
      cutOff: (reason) => {
        socket.destroy();
        observer.end({ ...observer.begin(clientOf(socket, {})), apiError: cutOffError(reason) }, 0, 0);
      },
    });
    connections.set(socket, { socket, open });
    socket.once('close', () => open.end());
  }

  async function answerTo({ request, connection, event }: Exchange): Promise<Answer> {
    // It was told while the request waited for those before it.
    if (isLast(connection, request) && !request.complete) throw connection.broken;
    checkHead(request);
    const openAnswer = openRoutes(request, event);
    if (openAnswer !== undefined) return openAnswer;
    if (isNotification(request.url, notifications)) return notificationCall(request, event, notifications);
    return signedCalls(request, event);
  }

  function handle(request: IncomingMessage, response: CountedResponse): void {
    // Whoever listened for its failure may have gone by the time that the client breaks off.
    request.on('error', ignore);
    // Where the body of an earlier request ends is not known, and so this one may be a part of it.
    if (misframed.has(request.socket)) return;
    if (framingFault(request) !== undefined) misframed.add(request.socket);
    const connection = connections.get(request.socket);
    // What was read before its connection was cut off is still handed over.
    if (connection === undefined || request.socket.destroyed) return;
    connection.latest = request;
    const call = connection.open.begin(request, response);
    if (call === undefined) return;
    connection.open.carryOut(call, () => void carryOut({ request, response, connection, call }));
  }

  async function carryOut({ request, response, connection, call }: Omit<Exchange, 'event'>): Promise<void> {
    const startedMs = performance.now();
    const event = observer.begin(call.client, request.headers);
    event.open = call;
    const exchange = { request, response, connection, call, event };
    let status = 0;
    try {
      const answer = await within(event, () => answerTo(exchange));
      if (connection.socket.destroyed) throw new ClientGone();
      status = await send(exchange, answer);
    } catch (error) {
      if (error instanceof ClientGone) event.apiError ??= goneError(call);
      else event.apiError = toApiError(error);
      // Nobody is there to be answered, or what is half answered cannot be taken back.
      if (error instanceof ClientGone || response.headersSent) connection.socket.destroy();
      else status = await send(exchange, errorResponse(toApiError(error), event.requestId));
    } finally {
      observer.end(event, status, performance.now() - startedMs);
    }
  }

  /** Writes an answer, behind what is left of a small body; its status. */
  async function send(exchange: Exchange, answer: Answer): Promise<number> {
    const { request, connection } = exchange;
    const isReused = !isLast(connection, request) && isFollowed(request);
    if (!request.complete && isReused && hasSmallBody(request)) await skipBody(request);
    write(exchange, answer);
    return answer.status;
  }

  function write({ request, response, connection, event }: Exchange, answer: Answer): void {
    const { headers } = answer;
    headers['Content-Length'] = String(Buffer.byteLength(answer.body));
    headers['X-Request-Id'] = event.requestId;
    headers['Cache-Control'] ??= 'no-store';
    const isBroken = isLast(connection, request);
    // A body that never came to its end would be timed, and answered a second time.
    const isClosing =
      isBroken ||
      !server.listening ||
      !request.complete ||
      !isFollowed(request) ||
      misframed.has(connection.socket);
    if (isClosing) headers.Connection = 'close';
    response.writeHead(answer.status, headers);
    if (!request.complete && !isBroken) endBehindBody(request, response, answer.body);
    else endWith(response, answer.body);
  }

  /** Refuses bytes that are not HTTP, headers that are too long, and what comes too slowly. */
  function refuseConnection(error: NodeJS.ErrnoException, socket: Socket): void {
    const apiError = parserError(error.code);
    const connection = connections.get(socket);
    if (connection !== undefined && connection.open.calls.length > 0) {
      connection.broken = apiError;
      // The calls before are answered first; one that waits for the rest of its body is answered with this.
      if (connection.latest?.complete === false) connection.latest.emit(bodyRejected, apiError);
    } else if (socket.writable && error.code !== 'ECONNRESET') {
      const event = { ...observer.begin(clientOf(socket, {})), apiError };
      const answer = errorResponse(apiError, event.requestId);
      endWithAnswer(socket, answer, event.requestId);
      observer.end(event, answer.status, 0);
    } else {
      socket.destroy();
    }
  }

  server.on('connection', connect);
  server.on('request', handle);
  server.on('checkExpectation', handle);
  server.on('connect', (_request, socket: Socket) => {
    // The server gave this socket up, its error listener included.
    socket.on('error', () => socket.destroy());
    socket.setTimeout(timeouts.keepAliveMs, () => socket.destroy());
    refuseConnection(new Error('CONNECT'), socket);
  });
  server.on('clientError', refuseConnection);
  if (tls !== undefined) shakeHandsFirst(server, tls);
  return server;
}

function ignore(): void {}

/** Why a call is over whose client is gone. */
function goneError({ cutOffReason }: OpenCall): ApiError {
  return cutOffReason === undefined ? cancelled() : cutOffError(cutOffReason);
}

/** Whether the answer to a request is the last of its connection. */
function isLast({ broken, latest }: Connection, request: IncomingMessage): boolean {
  return broken !== undefined && latest === request;
}

/** Whether the parser reads a next request: not behind an Upgrade, which is not made here. */
function isFollowed(request: IncomingMessage): boolean {
  return request.headers.upgrade === undefined;
}
