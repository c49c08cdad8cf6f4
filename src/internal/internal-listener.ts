import { randomUUIDv7 } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import { createServer as createHttp2Server, type ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { Logger } from 'pino';
import { logCall, type Trace } from '../observe/trace.ts';
import type { AnyRequest, AnyResponse, TypedCalls } from './typed-calls.ts';

/**
 * How long a client may take over its first byte, its headers, its whole request, and stay idle, and how long an end
 * is waited for that the client has to make possible, in milliseconds. Any call is answered before it counts as idle.
 */
const timeouts = {
  firstByteMs: 15_000,
  headersMs: 15_000,
  requestMs: 30_000,
  idleMs: 120_000,
  checkEveryMs: 5_000,
  lingerMs: 1_000,
} as const;

/** What the typed listener works with. */
export interface InternalListenerDependencies {
  readonly typedCalls: TypedCalls;
  readonly log: Logger;
  /** How long nothing may move on a connection, in milliseconds; tests wait less. */
  readonly idleMs?: number;
}

/** Connections at the same time, of both HTTP versions; what comes on top is closed at once. */
const connectionsMax = 2_000;
/** Calls at the same time on one HTTP/2 connection. */
const streamsPerConnectionMax = 100;

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
}: InternalListenerDependencies): InternalListener {
  function handle(request: AnyRequest, response: AnyResponse): void {
    const startedMs = performance.now();
    const trace: Trace = { requestId: randomUUIDv7() };
    // Whoever listened for their failure may have gone by the time that the client breaks off.
    request.on('error', () => {});
    response.on('error', () => {});
    endUnread(request, response);
    response.setHeader('X-Request-Id', trace.requestId);
    response.once('close', () => logCall(log, trace, response.statusCode, performance.now() - startedMs));
    try {
      typedCalls(request, response, trace);
    } catch {
      // The adapter throws on a Host or :authority that is not one.
      response.statusCode = 400;
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ code: 'invalid_argument', message: 'The request has no valid Host.' }));
    }
  }

  const http1 = createServer({
    headersTimeout: timeouts.headersMs,
    requestTimeout: timeouts.requestMs,
    keepAliveTimeout: idleMs,
    connectionsCheckingInterval: timeouts.checkEveryMs,
  });
  http1.maxConnections = connectionsMax;
  // Whoever reads no answer is timed by nothing else.
  http1.timeout = idleMs;
  http1.on('request', handle);
  http1.on('checkExpectation', handle);
  http1.on('connect', (_request, socket: Socket) => socket.destroy());

  const http2 = createHttp2Server({ settings: { maxConcurrentStreams: streamsPerConnectionMax } });
  const sessions = new Set<ServerHttp2Session>();
  http2.on('request', handle);
  http2.on('session', (session) => {
    sessions.add(session);
    session.on('close', () => sessions.delete(session));
  });

  const undecided = sniffPreface(http1, (socket) => {
    // The session begins while the connection is emitted.
    http2.once('session', (session) => session.setTimeout(idleMs, () => endIdle(session, socket)));
    http2.emit('connection', socket);
  });
  const sockets = new Set<Socket>();
  http1.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return {
    server: http1,
    drain: () => {
      for (const session of sessions) session.close();
      for (const socket of undecided) socket.destroy();
    },
    destroy: () => {
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Lets a session end, and ends it without its peer if that reads nothing or lets no answer through. */
function endIdle(session: ServerHttp2Session, socket: Socket): void {
  session.close();
  setTimeout(() => socket.destroy(), timeouts.lingerMs).unref();
}

/** Ends what a client still sends of a request that is answered: nobody reads it, and closing would wait for it. */
function endUnread(request: AnyRequest, response: AnyResponse): void {
  const stream = 'stream' in response ? response.stream : undefined;
  const carrier = stream ?? request.socket;
  (stream ?? response).once('finish', () => {
    if (request.complete) return;
    // At once it would take the answer away from a client that has not read it yet.
    setTimeout(() => request.complete || carrier.destroy(), timeouts.lingerMs).unref();
  });
}

/** What every HTTP/2 connection begins with, as far as it takes to tell it from HTTP/1.1. */
const prefaceStart = Buffer.from('PRI');

/**
 * Hands connections that begin with the HTTP/2 preface to `toHttp2` and all others to the server's own
 * listeners; the connections that have not said yet are in the set. The server keeps accepting, for its timeouts
 * look only at connections of a server that listens.
 */
function sniffPreface(server: Server, toHttp2: (socket: Socket) => void): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  const toHttp1 = server.listeners('connection') as ((socket: Socket) => void)[];
  server.removeAllListeners('connection');
  server.on('connection', (socket: Socket) => {
    const silence = setTimeout(() => socket.destroy(), timeouts.firstByteMs);
    const giveUp = () => socket.destroy();
    socket.on('error', giveUp).on('end', giveUp);
    undecided.add(socket);
    const decide = () => {
      clearTimeout(silence);
      undecided.delete(socket);
    };
    socket.once('close', decide);
    let head = Buffer.alloc(0);
    socket.on('readable', function sniff() {
      head = Buffer.concat([head, socket.read() ?? Buffer.alloc(0)]);
      const compared = Math.min(head.length, prefaceStart.length);
      const isStart = head.subarray(0, compared).equals(prefaceStart.subarray(0, compared));
      // One or two bytes of the preface decide nothing yet.
      if (head.length === 0 || (isStart && compared < prefaceStart.length)) return;
      decide();
      socket.off('readable', sniff).off('error', giveUp).off('end', giveUp);
      socket.unshift(head);
      if (isStart) {
        // HTTP/2 expects a socket that ends when its peer does; one that stays half open is never let go.
        socket.allowHalfOpen = false;
        toHttp2(socket);
      } else {
        for (const listener of toHttp1) listener.call(server, socket);
      }
    });
  });
  return undecided;
}
