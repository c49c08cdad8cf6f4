import { randomUUIDv7 } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, ServerResponse } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Stream } from 'node:http2';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { logCall, type Trace } from '../observe/trace.ts';
import {
  callsPerConnectionMax,
  createConnections,
  headerBytesMax,
  lingerMs,
  type OpenCall,
} from './connections.ts';
import type { AnyRequest, AnyResponse, TypedCalls } from './typed-calls.ts';

/**
 * How long a client may take over its headers and its whole request, stay idle, and show no valid token, in
 * milliseconds. An HTTP/2 connection with an open call is not idle while its peer takes what it is sent; one of HTTP/1.1 is
 * as soon as nothing moves, which is longer than the longest deadline.
 */
const timeouts = {
  headersMs: 15_000,
  requestMs: 30_000,
  idleMs: 120_000,
  unidentifiedMs: 20_000,
  checkEveryMs: 5_000,
} as const;

/** What the typed listener works with. */
export interface InternalListenerDependencies {
  readonly typedCalls: TypedCalls;
  readonly log: Logger;
  /** How long a connection may stay idle, in milliseconds; tests wait less. */
  readonly idleMs?: number;
  /** How long a connection may live without a valid token, in milliseconds; tests wait less. */
  readonly unidentifiedMs?: number;
}

/** Connections at the same time, of both HTTP versions; what comes on top is closed at once. */
const connectionsMax = 1_000;

/** The server of internal systems. */
export interface InternalListener {
  /** Accepts HTTP/1.1 and HTTP/2 without TLS on one port. It does not listen yet. */
  readonly server: Server;
  /** Lets the HTTP/2 connections end once their calls are answered, and ends those that never said what they are. */
  drain(): void;
  /** Ends all connections at once. */
  destroy(): void;
}

/** The listener of Connect, gRPC and gRPC-Web. */
export function createInternalListener({
  typedCalls,
  log,
  idleMs = timeouts.idleMs,
  unidentifiedMs = timeouts.unidentifiedMs,
}: InternalListenerDependencies): InternalListener {
  const connections = createConnections({ idleMs, unidentifiedMs });

  function handle(request: AnyRequest, response: AnyResponse): void {
    // Whoever listened for their failure may have gone by the time that the client breaks off.
    request.on('error', () => {});
    response.on('error', () => {});
    connections.begin(request, response, (call) => answer(request, response, call));
  }

  function answer(request: AnyRequest, response: AnyResponse, call: OpenCall): void {
    const startedMs = performance.now();
    const trace = traceOf(call);
    if ('stream' in response) endUnread(request, response.stream);
    response.setHeader('X-Request-Id', trace.requestId);
    response.once('close', () => logCall(log, trace, response.statusCode, performance.now() - startedMs));
    typedCalls(request, response, trace);
  }

  const http1 = createServer({
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
    maxHeaderSize: headerBytesMax,
    ServerResponse: LingeringResponse,
  });
  http1.maxConnections = connectionsMax;
  // Whoever reads no answer is timed by nothing else.
  http1.timeout = idleMs;
  http1.on('request', handle);
  http1.on('checkExpectation', handle);
  http1.on('connect', (_request, socket: Socket) => socket.destroy());

  const http2 = createHttp2Server({
    settings: { maxConcurrentStreams: callsPerConnectionMax, maxHeaderListSize: headerBytesMax },
  });
  http2.on('request', handle);
  http2.on('checkContinue', (request, response) => {
    // A stream can be over before its call is handed over, and Node throws at one that is.
    if (!response.stream.destroyed && !response.stream.closed) response.writeContinue();
    handle(request, response);
  });
  http2.on('checkExpectation', handle);
  http2.on('connect', handle);

  const undecided = sniffPreface(http1, (socket) => {
    // The session begins while the connection is emitted.
    http2.once('session', (session) => connections.addSession(socket, session));
    // HTTP/2 expects a socket that ends when its peer does; one that stays half open is never let go.
    socket.allowHalfOpen = false;
    // What was read goes on in one piece: Node's session fails on a second if the first ends it.
    socket.unshift(socket.read(socket.readableLength));
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

/** The trace of a call, which identifies its connection as soon as its caller is known. */
function traceOf(call: OpenCall): Trace {
  let caller: string | undefined;
  return {
    requestId: randomUUIDv7(),
    get caller() {
      return caller;
    },
    set caller(name) {
      caller = name;
      call.identify();
    },
  };
}

/** Ends what a client still sends of an HTTP/2 request that is answered: closing would wait for it. */
function endUnread(request: AnyRequest, stream: ServerHttp2Stream): void {
  stream.once('finish', () => {
    if (request.complete) return;
    // At once it would take the answer away from a client that has not read it yet.
    setTimeout(() => request.complete || stream.destroy(), lingerMs).unref();
  });
}

/**
 * An HTTP/1.1 answer that is the last of its connection if its request is not read to the end: what is left of that
 * stands before the next request. The connection then lingers (RFC 9112 section 9.6), since closing it while
 * something is unread would reset it, and take the answer away from a client that has not read it yet.
 */
class LingeringResponse extends ServerResponse {
  override writeHead(...head: unknown[]): this {
    if (!this.req.complete && this.socket !== null) {
      this.setHeader('Connection', 'close');
      linger(this.socket, this.req);
    }
    return Reflect.apply(super.writeHead, this, head);
  }
}

/** Lets the client end its connection once it is answered, and ends it a little later in any case. */
function linger(socket: Socket, request: IncomingMessage): void {
  // Node calls this when the answer has left.
  socket.destroySoon = () => {
    socket.end();
    // Whoever read the request may have stopped in the middle: read on, and throw away.
    request.push = () => true;
    socket.resume();
    setTimeout(() => socket.destroy(), lingerMs).unref();
  };
}

/** What every HTTP/2 connection begins with, as far as it takes to tell it from HTTP/1.1. */
const prefaceStart = Buffer.from('PRI');

/**
 * Hands connections that begin with the HTTP/2 preface to `toHttp2` and all others to the server's own
 * listeners; the connections that are with neither yet are in the set. The server keeps accepting, for its timeouts
 * look only at connections of a server that listens.
 */
function sniffPreface(server: Server, toHttp2: (socket: Socket) => void): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  const inTurn = oneInEachTurn();
  const toHttp1 = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const giveUp = () => socket.destroy();
    socket.on('error', giveUp).on('end', giveUp);
    undecided.add(socket);
    socket.once('close', () => undecided.delete(socket));
    let head = Buffer.alloc(0);
    socket.on('readable', function sniff() {
      head = Buffer.concat([head, socket.read() ?? Buffer.alloc(0)]);
      const compared = Math.min(head.length, prefaceStart.length);
      const isStart = head.subarray(0, compared).equals(prefaceStart.subarray(0, compared));
      // One or two bytes of the preface decide nothing yet.
      if (head.length === 0 || (isStart && compared < prefaceStart.length)) return;
      socket.off('readable', sniff);
      socket.unshift(head);
      const begin = (listeners: readonly ((socket: Socket) => void)[]) => {
        if (socket.destroyed) return;
        undecided.delete(socket);
        socket.off('error', giveUp).off('end', giveUp);
        for (const listener of listeners) listener.call(server, socket);
      };
      if (isStart) inTurn(() => begin([toHttp2]));
      else begin(toHttp1);
    });
  });
  return undecided;
}

/**
 * Runs tasks in their order, one in each turn of the event loop. A peer may send a hundred calls with the preface. Were
 * several connections begun in one turn, the calls of all of them would be held at once: what is cut off is let go of
 * when the turn ends.
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
