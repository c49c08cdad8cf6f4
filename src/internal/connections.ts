import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { AnyRequest, AnyResponse } from './any-http.ts';

/** The headers of a request, in bytes. No honest caller comes near. */
export const headerBytesMax = 16_384;
/** Calls at the same time on one connection. */
export const callsPerConnectionMax = 100;

/** Bounds of the connections over which nobody has shown a valid token. */
const unidentifiedMax = {
  connections: 512,
  /** Those among them that have open calls. */
  calling: 128,
  /** Open calls of one. */
  calls: 8,
  /** Characters in the headers of the open calls of one. */
  headerCharacters: 2 * headerBytesMax,
} as const;

/** How long a peer may take over an end that it was told of, in milliseconds. */
export const lingerMs = 1_000;

/** A call whose answer has not left. */
export interface OpenCall {
  /** Tells that the call came with a valid token. */
  identify(): void;
}

/** How long connections last, in milliseconds. */
export interface ConnectionPatience {
  /** Without anything moving on it, for one of HTTP/2; see `endWhenIdle`. */
  readonly idleMs: number;
  /** Without a valid token, whatever is sent. */
  readonly unidentifiedMs: number;
}

/** The open connections of a listener. */
export interface Connections {
  /** Takes in a connection that was accepted. */
  add(socket: Socket): void;
  /** Tells that a connection speaks HTTP/2. */
  addSession(socket: Socket, session: ServerHttp2Session): void;
  /**
   * Counts a call until its answer has left, and has it carried out: at once, or when its connection is identified; never
   * if that is ended before.
   */
  begin(request: AnyRequest, response: AnyResponse, carryOut: (call: OpenCall) => void): void;
  /** Tells the peers of HTTP/2 to end their connections once their calls are answered. */
  drain(): void;
  /** Ends all connections at once. */
  destroy(): void;
}

interface Connection {
  readonly socket: Socket;
  session?: ServerHttp2Session;
  /** The answers of its open calls. */
  readonly calls: Set<AnyResponse>;
  headerCharacters: number;
  /** The calls that wait for those before them to be judged; undefined if none is about to be. */
  waiting?: (() => void)[] | undefined;
}

/**
 * Keeps peers without a valid token from holding memory: all of them together hold at most 64 MB (RFC 9113 section
 * 10.5). A connection is unidentified until one of its calls is identified, and free of this from then on. What it has
 * open until then are answers that its peer does not read. Of these connections
 * - each is ended after `unidentifiedMs`, so that neither pings nor slow bytes keep it;
 * - only `calls` are carried out at a time. Those behind them wait for what becomes of these, and the connection is cut
 *   off if that has identified nobody, or if the headers are too long;
 * - the oldest is cut off when there are too many, and the oldest with open calls when there are too many of those.
 *   Were new ones refused instead, whoever fills the places would lock everybody out.
 */
export function createConnections({ idleMs, unidentifiedMs }: ConnectionPatience): Connections {
  const connections = new Set<Connection>();
  const byCarrier = new WeakMap<object, Connection>();
  /** The oldest first, each with the timer that ends it. */
  const unidentified = new Map<Connection, NodeJS.Timeout>();
  /** The unidentified ones with open calls; whose calls are open longest first. */
  const calling = new Set<Connection>();

  function identify(connection: Connection): void {
    forget(connection);
    const { waiting = [] } = connection;
    connection.waiting = undefined;
    for (const carryOut of waiting) carryOut();
  }

  function forget(connection: Connection): void {
    clearTimeout(unidentified.get(connection));
    unidentified.delete(connection);
    calling.delete(connection);
  }

  function cutOff(connection: Connection): void {
    forget(connection);
    // The session first: it lets go of its streams at once, and reads no more of what came with them.
    connection.session?.destroy();
    connection.socket.destroy();
  }

  function cutOffOldest(
    among: ReadonlyMap<Connection, unknown> | ReadonlySet<Connection>,
    max: number,
  ): void {
    const [oldest] = among.keys();
    if (among.size > max && oldest !== undefined) cutOff(oldest);
  }

  function begin(request: AnyRequest, response: AnyResponse, carryOut: (call: OpenCall) => void): void {
    const stream = 'stream' in request ? request.stream : undefined;
    const connection = byCarrier.get(stream?.session ?? request.socket);
    // What is read behind the end of a connection is still handed over.
    if (connection === undefined || !connection.socket.writable) return;
    // Counted, for a peer that does not acknowledge the settings of HTTP/2 is not held to their limit.
    const headerCharacters = request.rawHeaders.reduce((sum, { length }) => sum + length, 0);
    connection.calls.add(response);
    connection.headerCharacters += headerCharacters;
    response.once('close', () => {
      connection.calls.delete(response);
      connection.headerCharacters -= headerCharacters;
      if (connection.calls.size === 0) calling.delete(connection);
    });
    // HTTP/1.1 has no limit of its own to requests that are sent ahead of their answers.
    if (connection.calls.size > callsPerConnectionMax) cutOff(connection);
    if (connection.socket.destroyed) return;
    const begun = () => carryOut({ identify: () => identify(connection) });
    const waiting = unidentified.has(connection) ? judgeSoon(connection) : undefined;
    if (waiting !== undefined && connection.calls.size > unidentifiedMax.calls) waiting.push(begun);
    else begun();
  }

  /** Judges a connection once the tokens of all calls that were read together are checked; those that wait for it. */
  function judgeSoon(connection: Connection): (() => void)[] {
    if (connection.waiting !== undefined) return connection.waiting;
    connection.waiting = [];
    // Node hands over the calls of one read in ticks, and runs the microtasks, which check the tokens, behind them all.
    queueMicrotask(() => process.nextTick(judge, connection));
    return connection.waiting;
  }

  function judge(connection: Connection): void {
    connection.waiting = undefined;
    if (!unidentified.has(connection) || connection.calls.size === 0) return;
    calling.add(connection);
    const { calls, headerCharacters } = unidentifiedMax;
    if (connection.calls.size > calls || connection.headerCharacters > headerCharacters) cutOff(connection);
    cutOffOldest(calling, unidentifiedMax.calling);
  }

  return {
    add: (socket) => {
      const connection: Connection = { socket, calls: new Set(), headerCharacters: 0 };
      byCarrier.set(socket, connection);
      connections.add(connection);
      unidentified.set(connection, setTimeout(() => endGently(connection), unidentifiedMs).unref());
      socket.once('close', () => {
        forget(connection);
        connections.delete(connection);
        // Settings that were never acknowledged keep the session, this map its socket, that the native session, and that
        // the settings: a circle that is never collected.
        if (connection.session !== undefined) byCarrier.delete(connection.session);
      });
      cutOffOldest(unidentified, unidentifiedMax.connections);
    },
    addSession: (socket, session) => {
      const connection = byCarrier.get(socket);
      if (connection === undefined) return;
      connection.session = session;
      byCarrier.set(session, connection);
      endWhenIdle(connection, session, idleMs);
      session.once('close', () => clearIdleTimer(session));
    },
    begin,
    drain: () => {
      for (const { session } of connections) session?.close();
    },
    destroy: () => {
      for (const { socket } of connections) socket.destroy();
    },
  };
}

/**
 * Ends a connection on which nothing moves for `idleMs`, unless it has open calls and all of them wait for something to
 * tell: then its peer is asked whether it is still there (PING of HTTP/2), and has `idleMs` to answer. A peer that takes
 * nothing of an answer is not waited for.
 */
function endWhenIdle(connection: Connection, session: ServerHttp2Session, idleMs: number): void {
  session.setTimeout(idleMs, () => {
    const { calls } = connection;
    if (calls.size === 0 || calls.values().some(isHeldUp)) return endGently(connection);
    const isGone = setTimeout(() => endGently(connection), idleMs).unref();
    session.ping(() => {
      clearTimeout(isGone);
      endWhenIdle(connection, session, idleMs);
    });
  });
}

/**
 * Clears the timer that keeps a session in memory until it runs out. Node does not: `setTimeout` does nothing once a
 * session is destroyed, and Node calls it after that.
 */
function clearIdleTimer(session: ServerHttp2Session): void {
  session.setTimeout.call(Object.create(session, { destroyed: { value: false } }), 0);
}

/** Whether there is something of an answer that its peer does not take. */
function isHeldUp({ writableLength, writableEnded }: AnyResponse): boolean {
  return writableLength > 0 || writableEnded;
}

/** Lets a connection end, and ends it without its peer if that reads nothing or lets no answer through. */
function endGently({ socket, session, calls }: Connection): void {
  session?.close();
  const isIdle = session === undefined && calls.size === 0;
  setTimeout(() => socket.destroy(), isIdle ? 0 : lingerMs).unref();
}
