import type { Server } from 'node:http';
import { createServer as createHttp2Server, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import { type CallObserver, within } from '../../api/call-observer.ts';
import { ApiError, cancelled, cutOffError, reasons } from '../../domain/reason.ts';
import type { ClientOf } from '../../lib/networks.ts';
import { CountedHttp2Response, createHttp1Server, framingFault, lingerMs } from '../listen/http1-server.ts';
import {
  type AnyRequest,
  type AnyResponse,
  type CountedAnyResponse,
  isBrokenOff,
  type OpenCalls,
} from '../listen/open-calls.ts';
import type { TlsFront } from '../listen/tls-listeners.ts';
import {
  type CarriedOut,
  callsPerConnectionMax,
  createConnections,
  headerBytesMax,
  requestMs,
  resetsMax,
} from './connections.ts';
import type { ConsolePage } from './console-page.ts';
import { endWithError, sendError, unreadableError } from './errors.ts';
import type { TypedCalls } from './typed-calls.ts';

/**
 * How long a client may take over its headers, stay idle, and send no valid token, in milliseconds. An HTTP/2 connection with an
 * open call is not idle while its client reads. An HTTP/1.1 connection is idle when no byte moves; `idleMs` is longer than the
 * longest deadline.
 */
const timeouts = {
  headersMs: 15_000,
  idleMs: 120_000,
  unauthenticatedMs: 20_000,
  checkEveryMs: 5_000,
} as const;

/** The dependencies of the internal listener. */
export interface InternalListenerDependencies {
  readonly typedCalls: TypedCalls;
  /** Serves the console; undefined if the listener has none. */
  readonly consolePage?: ConsolePage | undefined;
  readonly clientOf: ClientOf;
  /** Does the TLS handshakes; undefined for plain HTTP. */
  readonly tls: TlsFront | undefined;
  readonly observer: CallObserver;
  readonly openCalls: OpenCalls;
  /** How long a connection may stay idle, in milliseconds. Tests set less. */
  readonly idleMs?: number;
  /** How long a connection may last without a valid token, in milliseconds. Tests set less. */
  readonly unauthenticatedMs?: number;
}

/** Connections at the same time, of both HTTP versions. Further ones are closed at once. */
const connectionsMax = 1_000;

/** The listener of Connect, gRPC, gRPC-Web and the console. */
export function createInternalListener({
  typedCalls,
  consolePage = () => false,
  clientOf,
  tls,
  observer,
  openCalls,
  idleMs = timeouts.idleMs,
  unauthenticatedMs = timeouts.unauthenticatedMs,
}: InternalListenerDependencies) {
  const connections = createConnections({ idleMs, unauthenticatedMs }, openCalls, clientOf);

  function handle(request: AnyRequest, response: CountedAnyResponse): void {
    // Their own listeners for errors may be gone by the time that the client breaks off.
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
      else if (isBrokenOff(response)) event.apiError ??= cancelled();
      const status = response.headersSent ? response.statusCode : 0;
      observer.end(event, status, performance.now() - startedMs);
    });
    const fault = framingFault(request);
    if (fault !== undefined)
      sendError(request, response, event, new ApiError('BAD_REQUEST_TARGET', fault), misframed);
    else if (!consolePage(request, response, event))
      within(event, () => typedCalls(request, response, event, call.open));
  }

  /** Rejects bytes that are not HTTP/1.1, headers that are too long, and requests that arrive too slowly. */
  function rejectUnreadable(error: NodeJS.ErrnoException, socket: Socket): void {
    // The client would take the response for that of an earlier call.
    if (!socket.writable || error.code === 'ECONNRESET' || !connections.owesNothing(socket)) {
      socket.destroy();
      return;
    }
    const event = { ...observer.begin(clientOf(socket, {})), apiError: unreadableError(error.code) };
    observer.end(event, endWithError(socket, event.apiError, event.requestId), 0);
  }

  const http1 = createHttp1Server({
    ...{ handle, connectionsMax, maxHeaderSize: headerBytesMax },
    headersTimeout: timeouts.headersMs,
    requestTimeout: requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
  });
  // The only timeout of a stream whose client is gone.
  http1.timeout = idleMs;
  http1.on('clientError', rejectUnreadable);
  http1.on('connect', (_request, socket: Socket) => socket.destroy());
  const http2 = createHttp2(handle);

  /** Finds the HTTP version of a connection by ALPN, after its handshake. */
  const negotiated =
    ({ handshake }: TlsFront): FindVersion =>
    (socket, found) =>
      handshake(socket, (secured) => {
        connections.secure(socket, secured);
        found(secured, secured.alpnProtocol === 'h2');
      });

  // Remembers the address, which a socket loses when it closes.
  http1.on('connection', (socket: Socket) => clientOf(socket, {}));
  const undecided = handOver(http1, tls === undefined ? sniffPreface : negotiated(tls), (socket) => {
    // Node creates the session while it handles the connection.
    http2.once('session', (session) => connections.addSession(socket, session));
    // HTTP/2 needs a socket that ends when its client ends it; one that stays half open is never freed.
    socket.allowHalfOpen = false;
    // In one piece: Node's session fails on a second piece if the first one ends it.
    if (socket.readableLength > 0) socket.unshift(socket.read(socket.readableLength));
    http2.emit('connection', socket);
  });
  http1.prependListener('connection', connections.add);
  return {
    /** Accepts HTTP/1.1 and HTTP/2 on one port. It does not listen yet. */
    server: http1,
    /** Lets HTTP/2 connections end once their calls are answered, and closes connections that have sent nothing yet. */
    drain: (): void => {
      connections.drain();
      for (const socket of undecided) socket.destroy();
    },
    /** Closes all connections at once. */
    destroy: connections.destroy,
  };
}

/** The HTTP status of a misframed request, even over gRPC-Web, because a proxy has to see it. */
const misframed = { status: reasons.BAD_REQUEST_TARGET.http };

type Handle = (request: AnyRequest, response: CountedAnyResponse) => void;

function createHttp2(handle: Handle): Http2Server {
  const server = createHttp2Server({
    settings: { maxConcurrentStreams: callsPerConnectionMax, maxHeaderListSize: headerBytesMax },
    Http2ServerResponse: CountedHttp2Response,
    // A call that was reset is not concurrent any more, but it cost work.
    ...{ streamResetBurst: resetsMax.atOnce, streamResetRate: resetsMax.perS },
  });
  server.on('request', handle);
  server.on('checkContinue', (request, response) => {
    // The stream may be over by now, and then Node throws.
    if (!response.stream.destroyed && !response.stream.closed) response.writeContinue();
    handle(request, response);
  });
  server.on('checkExpectation', handle);
  server.on('connect', handle);
  return server;
}

/** Ends the rest of an HTTP/2 request that has its response. Otherwise closing would wait for it. */
function endUnread(request: AnyRequest, stream: ServerHttp2Stream): void {
  stream.once('finish', () => {
    if (request.complete) return;
    // Later, so that the client can read its response first.
    setTimeout(() => request.complete || stream.destroy(), lingerMs).unref();
  });
}

/** The first bytes of every HTTP/2 connection; no HTTP/1.1 request of ours begins with them. */
const prefaceStart = Buffer.from('PRI');

/** Finds the HTTP version of a connection. Calls back with its socket to use from now on; never if it ends before. */
type FindVersion = (socket: Socket, found: (carrier: Socket, isHttp2: boolean) => void) => void;

/**
 * Hands HTTP/2 connections to `toHttp2` and all others to the server's own listeners. The returned set has the connections
 * whose version is not known yet. The server itself accepts all of them, because its timeouts apply only to a server that listens.
 */
function handOver(
  server: Server,
  findVersion: FindVersion,
  toHttp2: (socket: Socket) => void,
): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  const inTurn = oneInEachTurn();
  const toHttp1 = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    undecided.add(socket);
    socket.once('close', () => undecided.delete(socket));
    findVersion(socket, (carrier, isHttp2) => {
      const giveUp = () => carrier.destroy();
      carrier.on('error', giveUp).on('end', giveUp);
      const begin = (listeners: readonly ((socket: Socket) => void)[]) => {
        if (carrier.destroyed) return;
        undecided.delete(socket);
        carrier.off('error', giveUp).off('end', giveUp);
        for (const listener of listeners) listener.call(server, carrier);
      };
      if (isHttp2) inTurn(() => begin([toHttp2]));
      else begin(toHttp1);
    });
  });
  return undecided;
}

/** Recognizes HTTP/2 by its preface. */
const sniffPreface: FindVersion = (socket, found) => {
  const giveUp = () => socket.destroy();
  socket.on('error', giveUp).on('end', giveUp);
  let head = Buffer.alloc(0);
  socket.on('readable', function sniff() {
    head = Buffer.concat([head, socket.read() ?? Buffer.alloc(0)]);
    const compared = Math.min(head.length, prefaceStart.length);
    const isStart = head.subarray(0, compared).equals(prefaceStart.subarray(0, compared));
    // One or two bytes of the preface are not enough.
    if (head.length === 0 || (isStart && compared < prefaceStart.length)) return;
    socket.off('readable', sniff);
    socket.unshift(head);
    socket.off('error', giveUp).off('end', giveUp);
    found(socket, isStart);
  });
};

/**
 * Runs tasks in order, one in each turn of the event loop. A client may send a hundred calls with the preface. If several
 * connections began in one turn, the calls of all of them would be in memory at once, because a connection that is cut off is
 * freed when the turn ends.
 */
function oneInEachTurn(): (task: () => void) => void {
  const waiting: (() => void)[] = [];
  const run = () => {
    waiting[0]?.();
    waiting.shift();
    if (waiting.length > 0) setImmediate(run);
  };
  return (task) => {
    if (waiting.push(task) === 1) setImmediate(run);
  };
}
