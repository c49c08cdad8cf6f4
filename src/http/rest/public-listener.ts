import type { IncomingMessage, Server } from 'node:http';
import type { Socket } from 'node:net';
import { type CallObserver, type RequestEvent, within } from '../../api/call-observer.ts';
import { ApiError, cancelled, cutOffError, incomplete, toApiError } from '../../domain/reason.ts';
import type { ClientOf } from '../../lib/networks.ts';
import { type CountedResponse, createHttp1Server, endConnection, endWith } from '../listen/http1-server.ts';
import type { OpenCall, OpenCalls, OpenConnection } from '../listen/open-calls.ts';
import { handshakeFirst, type TlsFront } from '../listen/tls-listeners.ts';
import {
  badRequest,
  bodyRejected,
  ClientGone,
  checkHead,
  errorResponse,
  type HttpResponse,
  skipSmallBody,
} from './http-message.ts';
import type { OpenRoutes } from './open-routes.ts';
import type { SignedCalls } from './routes.ts';

/** Limits of every HTTP/1.1 request. */
const requestLimits = {
  /** Number of headers, as in Apache httpd and Tomcat. */
  headers: 100,
  /** The request line and all headers, in bytes. */
  headBytes: 16_384,
  /** How long a client may take to send the whole request, in milliseconds. */
  wholeMs: 30_000,
} as const;

/** The dependencies of the public listener. */
export interface PublicListenerDependencies {
  readonly signedCalls: SignedCalls;
  readonly openRoutes: OpenRoutes;
  readonly clientOf: ClientOf;
  /** Undefined for plain HTTP. */
  readonly tls: TlsFront | undefined;
  readonly observer: CallObserver;
  readonly openCalls: OpenCalls;
}

/** An accepted connection. */
interface Connection {
  readonly socket: Socket;
  readonly open: OpenConnection;
  latest?: IncomingMessage;
  /** Why nothing more can be read. */
  broken?: ApiError;
}

/** A request and its response. */
interface Exchange {
  readonly request: IncomingMessage;
  readonly response: CountedResponse;
  readonly connection: Connection;
  readonly call: OpenCall;
  readonly event: RequestEvent;
}

/** Open connections: twice the calls that run at the same time. Further connections are closed at once. */
const connectionsMax = 4_000;
/** Requests on one connection without a response; with one more the connection is closed. */
const requestsAheadMax = 32;
/** How long a connection may be idle between two requests, and how often time limits are checked, in milliseconds. */
const timeouts = { keepAliveMs: 60_000, checkEveryMs: 5_000 } as const;

/** Creates the HTTP/1.1 server of the public API. It does not listen yet. */
export function createPublicListener(dependencies: PublicListenerDependencies): Server {
  const { clientOf, tls, observer, openCalls } = dependencies;
  const connections = new WeakMap<Socket, Connection>();
  const server = createHttp1Server({
    ...{ handle, connectionsMax },
    // `checkHead` rejects a request without Host, with the JSON of errors.
    requireHostHeader: false,
    maxHeaderSize: requestLimits.headBytes,
    // Clients that send slowly: the limit covers headers and body.
    requestTimeout: requestLimits.wholeMs,
    keepAliveTimeout: timeouts.keepAliveMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
  });
  server.maxHeadersCount = requestLimits.headers;
  const run = createExchanges(dependencies, server);

  function connect(socket: Socket): void {
    // Remembers the address, which a socket loses when it closes.
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

  function handle(request: IncomingMessage, response: CountedResponse): void {
    // The client may disconnect when no other listener is left.
    request.on('error', ignore);
    const connection = connections.get(request.socket);
    // Node still delivers what it read before the connection was closed.
    if (connection === undefined || request.socket.destroyed) return;
    connection.latest = request;
    const call = connection.open.begin(request, response);
    if (call === undefined) return;
    connection.open.carryOut(call, () => void run({ request, response, connection, call }));
  }

  /** Handles bytes that are not HTTP, headers that are too long, and requests that arrive too slowly. */
  function rejectConnection(error: NodeJS.ErrnoException, socket: Socket): void {
    const apiError = parserError(error.code);
    const connection = connections.get(socket);
    if (connection !== undefined && connection.open.calls.length > 0) {
      connection.broken = apiError;
      // Earlier calls get their responses first. A call that waits for the rest of its body gets this error.
      if (connection.latest?.complete === false) connection.latest.emit(bodyRejected, apiError);
    } else if (socket.writable && error.code !== 'ECONNRESET') {
      const event = { ...observer.begin(clientOf(socket, {})), apiError };
      const { status, headers, body } = errorResponse(apiError, event.requestId);
      endConnection(socket, status, { ...headers, 'X-Request-Id': event.requestId }, body);
      observer.end(event, status, 0);
    } else {
      socket.destroy();
    }
  }

  server.on('connection', connect);
  server.on('connect', (_request, socket: Socket) => {
    // Node has removed its own listeners from the socket.
    socket.on('error', () => socket.destroy());
    socket.setTimeout(timeouts.keepAliveMs, () => socket.destroy());
    rejectConnection(new Error('CONNECT'), socket);
  });
  server.on('clientError', rejectConnection);
  if (tls !== undefined) handshakeFirst(server, tls);
  return server;
}

/** Returns the function that runs a call and sends its response on a connection of the server. */
function createExchanges(
  { signedCalls, openRoutes, observer }: PublicListenerDependencies,
  server: Pick<Server, 'listening'>,
): (exchange: Omit<Exchange, 'event'>) => Promise<void> {
  function respond({ request, connection, event }: Exchange): Promise<HttpResponse> {
    // The connection broke while the request waited for the ones before it.
    if (isLast(connection, request) && !request.complete) throw connection.broken;
    checkHead(request);
    return openRoutes(request, event) ?? signedCalls(request, event);
  }

  /** Sends a response, after the rest of a small body; returns its status. */
  function send(exchange: Exchange, http: HttpResponse): number | Promise<number> {
    const { request, connection } = exchange;
    if (request.complete || !isFollowed(request) || isLast(connection, request)) return write(exchange, http);
    return skipSmallBody(request).then(() => write(exchange, http));
  }

  function write({ request, response, connection, event }: Exchange, http: HttpResponse): number {
    const { headers } = http;
    headers['Content-Length'] = String(Buffer.byteLength(http.body));
    headers['X-Request-Id'] = event.requestId;
    headers['Cache-Control'] ??= 'no-store';
    if (isLast(connection, request) || !server.listening || !isFollowed(request))
      headers.Connection = 'close';
    response.writeHead(http.status, headers);
    endWith(response, http.body);
    return http.status;
  }

  return async ({ request, response, connection, call }) => {
    const startedMs = performance.now();
    const event = observer.begin(call.client, request.headers);
    event.open = call;
    const exchange = { request, response, connection, call, event };
    let status = 0;
    try {
      const result = await within(event, () => respond(exchange));
      if (connection.socket.destroyed) throw new ClientGone();
      status = await send(exchange, result);
    } catch (error) {
      if (error instanceof ClientGone) event.apiError ??= goneError(call);
      else event.apiError = toApiError(error);
      // There is no client, or a part of another response was already sent.
      if (error instanceof ClientGone || response.headersSent) connection.socket.destroy();
      else status = await send(exchange, errorResponse(toApiError(error), event.requestId));
    } finally {
      observer.end(event, status, performance.now() - startedMs);
    }
  };
}

function ignore(): void {}

/** Node parses no next request after an Upgrade, which this server never performs. */
const isFollowed = ({ headers }: IncomingMessage): boolean => headers.upgrade === undefined;

/** The error of a call whose client is gone. */
function goneError({ cutOffReason }: OpenCall): ApiError {
  return cutOffReason === undefined ? cancelled() : cutOffError(cutOffReason);
}

/** Whether the response to a request is the last one of its connection. */
function isLast({ broken, latest }: Connection, request: IncomingMessage): boolean {
  return broken !== undefined && latest === request;
}

/** The ApiError for an error code of Node's HTTP parser. */
function parserError(code: string | undefined): ApiError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return incomplete(requestLimits.wholeMs);
    case 'HPE_HEADER_OVERFLOW': {
      const { headers, headBytes } = requestLimits;
      const rule = `more than ${headers} headers, or its line and headers are longer than ${headBytes / 1_024} KiB`;
      return badRequest(`The request has ${rule}: send fewer.`);
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('BODY_TOO_LARGE', 'The chunk extensions of the body are too long.');
    default:
      return badRequest('The received bytes are not an HTTP/1.1 request that this service accepts.');
  }
}
