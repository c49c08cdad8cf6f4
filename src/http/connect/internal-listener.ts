import { createServer, type IncomingMessage, type Server } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { type CallObserver, within } from '../../api/call-observer.ts';
import type { RequestEvent } from '../../api/request-event.ts';
import { ApiError, cancelled, cutOffError, reasons } from '../../domain/reason.ts';
import type { AnyRequest, AnyResponse } from '../listen/any-http.ts';
import type { ClientOf } from '../listen/clients.ts';
import { CountedHttp2Response } from '../listen/counted-response.ts';
import type { CountedAnyResponse, OpenCalls } from '../listen/open-calls.ts';
import { framingFault } from '../listen/request-head.ts';
import type { TlsFront } from '../listen/tls-front.ts';
import { callsPerConnectionMax, headerBytesMax, lingerMs, requestMs, resetsMax } from './connection.ts';
import { type CarriedOut, createConnections } from './connections.ts';
import { LingeringResponse } from './lingering-response.ts';
import { sendError } from './plain-responses.ts';
import { type FindVersion, handOver, sniffPreface } from './preface.ts';
import type { TypedCalls } from './typed-calls.ts';
import { endWithError, unreadableError } from './unreadable.ts';

/**
 * How long a client may take over its headers, stay idle, and show no valid token, in milliseconds. An HTTP/2 connection
 * with an open call is not idle while its peer takes what it is sent; one of HTTP/1.1 is as soon as nothing moves, which is
 * longer than the longest deadline.
 */
const timeouts = {
  headersMs: 15_000,
  idleMs: 120_000,
  unauthenticatedMs: 20_000,
  checkEveryMs: 5_000,
} as const;

/** What the typed listener works with. */
export interface InternalListenerDependencies {
  readonly typedCalls: TypedCalls;
  readonly clientOf: ClientOf;
  /** What connections are secured with first; undefined for plain HTTP. */
  readonly tls: TlsFront | undefined;
  readonly observer: CallObserver;
  readonly openCalls: OpenCalls;
  /** How long a connection may stay idle, in milliseconds; tests wait less. */
  readonly idleMs?: number;
  /** How long a connection may live without a valid token, in milliseconds; tests wait less. */
  readonly unauthenticatedMs?: number;
}

/** Connections at the same time, of both HTTP versions; what comes on top is closed at once. */
const connectionsMax = 1_000;

/** The server of internal systems. */
export interface InternalListener {
  /** Accepts HTTP/1.1 and HTTP/2 on one port. It does not listen yet. */
  readonly server: Server;
  /** Lets the HTTP/2 connections end once their calls are answered, and ends those that never said what they are. */
  drain(): void;
  /** Ends all connections at once. */
  destroy(): void;
}

/** The listener of Connect, gRPC and gRPC-Web. */
export function createInternalListener({
  typedCalls,
  clientOf,
  tls,
  observer,
  openCalls,
  idleMs = timeouts.idleMs,
  unauthenticatedMs = timeouts.unauthenticatedMs,
}: InternalListenerDependencies): InternalListener {
  const connections = createConnections({ idleMs, unauthenticatedMs }, openCalls, clientOf);

  /** Connections on which nothing more is read: they are closed behind the answer that says so. */
  const misframed = new WeakSet<Socket>();

  /** Takes a request of HTTP/1.1; one whose body may end elsewhere for a proxy is refused, and what follows it dropped. */
  function handleHttp1(request: IncomingMessage, response: LingeringResponse): void {
    const { socket } = request;
    if (misframed.has(socket)) return;
    if (framingFault(request) !== undefined) misframed.add(socket);
    handle(request, response);
  }

  function handle(request: AnyRequest, response: CountedAnyResponse): void {
    // Whoever listened for their failure may have gone by the time that the client breaks off.
    request.on('error', () => {});
    response.on('error', () => {});
    connections.begin(request, response, (call) => answer(request, response, call));
  }

  function answer(request: AnyRequest, response: AnyResponse, call: CarriedOut): void {
    const startedMs = performance.now();
    const event = observer.begin(call.open.client, request.headers);
    event.open = call;
    if ('stream' in response) endUnread(request, response.stream);
    response.setHeader('X-Request-Id', event.requestId);
    response.once('close', () => {
      const { cutOffReason } = call.open;
      if (cutOffReason !== undefined) event.apiError = cutOffError(cutOffReason);
      else if (isGivenUp(response)) event.apiError ??= cancelled();
      const status = response.headersSent ? response.statusCode : 0;
      observer.end(event, status, performance.now() - startedMs);
    });
    const fault = 'stream' in response ? undefined : framingFault(request);
    if (fault === undefined) within(event, () => typedCalls(request, response, event, call.open));
    else refuseFraming(request, response, event, fault);
  }

  /** Refuses bytes that are not HTTP/1.1, headers that are too long, and what comes too slowly. */
  function refuseUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
    // An answer would be taken for that of a call before.
    if (!socket.writable || error.code === 'ECONNRESET' || !connections.owesNothing(socket)) {
      socket.destroy();
      return;
    }
    const event = { ...observer.begin(clientOf(socket, {})), apiError: unreadableError(error.code) };
    observer.end(event, endWithError(socket, event.apiError, event.requestId), 0);
  }

  const http1 = createServer({
    headersTimeout: timeouts.headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
    maxHeaderSize: headerBytesMax,
    ServerResponse: LingeringResponse,
  });
  http1.maxConnections = connectionsMax;
  // Not in Node's types: else it ends a connection with its client's half, and calls under way are not answered.
  Object.assign(http1, { httpAllowHalfOpen: true });
  // A stream whose client is gone is timed by nothing else.
  http1.timeout = idleMs;
  http1.on('request', handleHttp1);
  http1.on('checkExpectation', handleHttp1);
  http1.on('clientError', refuseUnreadable);
  http1.on('connect', (_request, socket: Socket) => socket.destroy());

  /** Secures a connection, whose client says by ALPN which HTTP it speaks. */
  const negotiated =
    ({ handshake }: TlsFront): FindVersion =>
    (socket, found) =>
      handshake(socket, (secured) => {
        connections.secure(socket, secured);
        found(secured, secured.alpnProtocol === 'h2');
      });

  const http2 = createHttp2Server({
    settings: { maxConcurrentStreams: callsPerConnectionMax, maxHeaderListSize: headerBytesMax },
    // What is reset is no call at the same time any more, but was worked on.
    Http2ServerResponse: CountedHttp2Response,
    ...{ streamResetBurst: resetsMax.atOnce, streamResetRate: resetsMax.perS },
  });
  http2.on('request', handle);
  http2.on('checkContinue', (request, response) => {
    // A stream can be over before its call is handed over, and Node throws at one that is.
    if (!response.stream.destroyed && !response.stream.closed) response.writeContinue();
    handle(request, response);
  });
  http2.on('checkExpectation', handle);
  http2.on('connect', handle);

  // Whoever is gone by the time that it is logged has no address any more.
  http1.on('connection', (socket: Socket) => clientOf(socket, {}));
  const undecided = handOver(http1, tls === undefined ? sniffPreface : negotiated(tls), (socket) => {
    // The session begins while the connection is emitted.
    http2.once('session', (session) => connections.addSession(socket, session));
    // HTTP/2 expects a socket that ends when its peer does; one that stays half open is never let go.
    socket.allowHalfOpen = false;
    // What was read goes on in one piece: Node's session fails on a second if the first ends it.
    if (socket.readableLength > 0) socket.unshift(socket.read(socket.readableLength));
    http2.emit('connection', socket);
  });
  http1.prependListener('connection', connections.add);
  return {
    server: http1,
    drain: () => {
      connections.drain();
      for (const socket of undecided) socket.destroy();
    },
    destroy: connections.destroy,
  };
}

/** Whether the client of an answer that is over was gone before it had the whole of it. */
function isGivenUp(response: AnyResponse): boolean {
  return 'stream' in response ? response.stream.aborted : !response.writableFinished;
}

/** Refuses a request of HTTP/1.1 for its framing, and closes its connection. */
function refuseFraming(request: AnyRequest, response: AnyResponse, event: RequestEvent, fault: string): void {
  response.setHeader('Connection', 'close');
  const apiError = new ApiError('BAD_REQUEST_TARGET', fault);
  // A status of HTTP in gRPC-Web as well: a proxy before this service has to see it.
  sendError(request, response, event, apiError, { status: reasons.BAD_REQUEST_TARGET.http });
}

/** Ends what a client still sends of an HTTP/2 request that is answered: closing would wait for it. */
function endUnread(request: AnyRequest, stream: ServerHttp2Stream): void {
  stream.once('finish', () => {
    if (request.complete) return;
    // At once it would take the answer away from a client that has not read it yet.
    setTimeout(() => request.complete || stream.destroy(), lingerMs).unref();
  });
}
