import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { AnyRequest, AnyResponse } from './typed-calls.ts';

/** The headers of a request, in bytes. No honest caller comes near. */
export const headerBytesMax = 16_384;
/** Calls at the same time on one connection. */
export const callsPerConnectionMax = 100;

/** Bounds of the connections over which nobody has shown a valid token. */
const unidentifiedMax = {
  connections: 512,
  /** What the calls of one may hold, in bytes, as `reckoned`: a hundred calls of common size at once. */
  heldBytesOfOne: 2 * 1_048_576,
  /** What the calls of all may hold together. */
  heldBytes: 16 * 1_048_576,
} as const;

/** What is reckoned to be held, in bytes. */
const reckoned = {
  /** By a call, beside its headers and its body. */
  callBytes: 8_192,
  /** By a character of a header: it is kept as received, as read, and as refused. */
  headerCharacterBytes: 3,
  /** By a chunk of a body, beside its bytes: very small ones cost more than they carry. */
  chunkBytes: 1_024,
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
  /** Without anything moving on it, for one of HTTP/2. */
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
  /** Counts a call until its answer has left; undefined if its connection was ended, so that it is not to be made. */
  begin(request: AnyRequest, response: AnyResponse): OpenCall | undefined;
  /** Tells the peers of HTTP/2 to end their connections once their calls are answered. */
  drain(): void;
  /** Ends all connections at once. */
  destroy(): void;
}

interface Connection {
  readonly socket: Socket;
  session?: ServerHttp2Session;
  calls: number;
  /** What its calls are reckoned to hold, in bytes, while it is unidentified. */
  heldBytes: number;
}

/**
 * Keeps peers without a valid token from keeping memory alive: all together at most 64 MB (RFC 9113
 * section 10.5). A connection is unidentified until one of its calls is identified, and free of this from then on.
 * Of the unidentified ones
 * - each is ended after `unidentifiedMs`, so that neither pings nor slow bytes keep it;
 * - the oldest is cut off when there are too many. Were new ones refused instead, whoever fills the places would
 *   lock everybody out, while honest callers show their token at once and have left before their turn comes;
 * - the one whose calls hold most is cut off when all hold too much. That is never less than
 *   the average, which is more than one call of common size, so it does not fall on a caller who begins with one.
 */
export function createConnections({ idleMs, unidentifiedMs }: ConnectionPatience): Connections {
  const connections = new Set<Connection>();
  const byCarrier = new WeakMap<object, Connection>();
  /** The oldest first, each with the timer that ends it. */
  const unidentified = new Map<Connection, NodeJS.Timeout>();
  let heldBytes = 0;

  function discount(connection: Connection): void {
    clearTimeout(unidentified.get(connection));
    if (unidentified.delete(connection)) heldBytes -= connection.heldBytes;
  }

  function cutOff(connection: Connection): void {
    discount(connection);
    // The session first: it lets go of its streams at once, and reads no more of what came with them.
    connection.session?.destroy();
    connection.socket.destroy();
  }

  function hold(connection: Connection, bytes: number): void {
    if (!unidentified.has(connection)) return;
    connection.heldBytes += bytes;
    heldBytes += bytes;
    if (connection.heldBytes > unidentifiedMax.heldBytesOfOne) cutOff(connection);
    if (heldBytes > unidentifiedMax.heldBytes) cutOff(heaviest(unidentified.keys()));
  }

  function add(socket: Socket): void {
    const connection: Connection = { socket, calls: 0, heldBytes: 0 };
    byCarrier.set(socket, connection);
    connections.add(connection);
    unidentified.set(connection, setTimeout(() => endGently(connection), unidentifiedMs).unref());
    socket.once('close', () => {
      discount(connection);
      connections.delete(connection);
    });
    const [oldest = connection] = unidentified.keys();
    if (unidentified.size > unidentifiedMax.connections) cutOff(oldest);
  }

  function begin(request: AnyRequest, response: AnyResponse): OpenCall | undefined {
    const stream = 'stream' in request ? request.stream : undefined;
    const connection = byCarrier.get(stream?.session ?? request.socket);
    // What is read behind the end of a connection is still handed over.
    if (connection === undefined || !connection.socket.writable) return;
    let callHeldBytes = 0;
    const holdForCall = (bytes: number) => {
      callHeldBytes += bytes;
      hold(connection, bytes);
    };
    connection.calls += 1;
    response.once('close', () => {
      connection.calls -= 1;
      hold(connection, -callHeldBytes);
    });
    // A peer that does not acknowledge the settings is not held to their limit of headers.
    const characters = request.rawHeaders.reduce((sum, { length }) => sum + length, 0);
    holdForCall(reckoned.callBytes + characters * reckoned.headerCharacterBytes);
    stream?.once('trailers', () => unidentified.has(connection) && cutOff(connection));
    // HTTP/1.1 has no limit of its own to requests that are sent ahead of their answers.
    if (connection.calls > callsPerConnectionMax) cutOff(connection);
    if (connection.socket.destroyed) return;

    const body = stream ?? request;
    const push = body.push;
    body.push = (chunk: Uint8Array | null, encoding) => {
      if (chunk === null || !unidentified.has(connection)) return push.call(body, chunk, encoding);
      // Nobody reads on once a call is refused.
      if (response.headersSent) return true;
      holdForCall(chunk.length + reckoned.chunkBytes);
      // A copy, since a chunk keeps all that was read with it from the socket.
      return push.call(body, Buffer.from(chunk), encoding);
    };
    return { identify: () => discount(connection) };
  }

  return {
    add,
    addSession: (socket, session) => {
      const connection = byCarrier.get(socket);
      if (connection === undefined) return;
      connection.session = session;
      byCarrier.set(session, connection);
      session.setTimeout(idleMs, () => endGently(connection));
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

function heaviest(connections: Iterable<Connection>): Connection {
  return Array.from(connections).reduce((most, next) => (next.heldBytes > most.heldBytes ? next : most));
}

/** Lets a connection end, and ends it without its peer if that reads nothing or lets no answer through. */
function endGently({ socket, session, calls }: Connection): void {
  session?.close();
  const isIdle = session === undefined && calls === 0;
  setTimeout(() => socket.destroy(), isIdle ? 0 : lingerMs).unref();
}
