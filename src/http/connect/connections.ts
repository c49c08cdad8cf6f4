import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { ClientOf } from '../../lib/networks.ts';
import { lingerMs } from '../listen/http1-server.ts';
import type {
  AnyRequest,
  CountedAnyResponse,
  OpenCall,
  OpenCalls,
  OpenConnection,
} from '../listen/open-calls.ts';

/** The largest headers of a request, in bytes, far above those of any real client. */
export const headerBytesMax = 16_384;
/** Calls at the same time on one connection. */
export const callsPerConnectionMax = 100;
/** Calls that a client may reset on one connection before their responses: at once, and then each second. */
export const resetsMax = { atOnce: 2 * callsPerConnectionMax, perS: callsPerConnectionMax } as const;
/** How long a client may take over a whole request that is not a stream, in milliseconds. */
export const requestMs = 30_000;

/** An accepted connection. */
interface Connection {
  /** The TCP socket; the TLS socket after a handshake. */
  socket: Socket;
  /** The session of an HTTP/2 connection. */
  session?: ServerHttp2Session;
  /** Its open calls. */
  readonly open: OpenConnection;
}

/** Closes a connection at once. */
function cutOff({ session, socket }: Connection): void {
  // The session first: it frees its streams at once and reads nothing more.
  session?.destroy();
  socket.destroy();
}

/** Lets a connection end, and closes it if the client does not within `lingerMs`. */
function endGently({ socket, session, open }: Connection): void {
  session?.close();
  const isIdle = session === undefined && open.calls.length === 0;
  setTimeout(() => socket.destroy(), isIdle ? 0 : lingerMs).unref();
}

/**
 * Ends an HTTP/2 connection on which no byte moves for `idleMs`. If it has open calls, the server sends a PING first, and the
 * client has `idleMs` to answer.
 */
function endWhenIdle(connection: Connection, session: ServerHttp2Session, idleMs: number): void {
  waitUntilIdle(connection, session, idleMs);
  session.once('close', () => clearIdleTimer(session));
}

function waitUntilIdle(connection: Connection, session: ServerHttp2Session, idleMs: number): void {
  session.setTimeout(idleMs, () => {
    if (connection.open.calls.length === 0) return endGently(connection);
    const isGone = setTimeout(() => endGently(connection), idleMs).unref();
    session.ping(() => {
      clearTimeout(isGone);
      waitUntilIdle(connection, session, idleMs);
    });
  });
}

/**
 * Clears the timer that keeps a closed session in memory. Node does not: `setTimeout` does nothing once a session is destroyed,
 * and Node calls it after that.
 */
function clearIdleTimer(session: ServerHttp2Session): void {
  session.setTimeout.call(Object.create(session, { destroyed: { value: false } }), 0);
}

/** The limits of connections without a valid token. */
const unauthenticatedMax = {
  connections: 512,
  /** Open calls on one connection. */
  calls: 8,
} as const;

/** The state of a connection without a valid token. */
interface UnauthenticatedConnection {
  /** Ends the connection. */
  readonly timer: NodeJS.Timeout;
  /** The calls that wait until the tokens of earlier calls are checked; undefined if none is being checked. */
  waiting?: (() => void)[] | undefined;
}

/**
 * Denial of service: keeps clients without a valid token from using up connections and memory. A connection is limited until
 * one of its calls has a valid token:
 * - it is closed after `timeoutMs`, so that neither pings nor slow bytes keep it open;
 * - only `calls` of its calls run at a time. Further ones wait, and if none of the first has a valid token, the connection is
 *   closed;
 * - when there are too many connections, the oldest is closed. If new ones were rejected instead, anybody could lock all others
 *   out by filling the limit.
 */
function createUnauthenticatedConnections(timeoutMs: number) {
  /** The oldest first. */
  const limited = new Map<Connection, UnauthenticatedConnection>();

  /** Removes a connection that has ended. The calls that waited never run. */
  function forget(connection: Connection): void {
    clearTimeout(limited.get(connection)?.timer);
    limited.delete(connection);
  }

  function end(connection: Connection | undefined): void {
    if (connection === undefined) return;
    forget(connection);
    cutOff(connection);
  }

  /** Checks a connection after the tokens of all calls that were read together; returns its calls that wait. */
  function checkSoon(connection: Connection, state: UnauthenticatedConnection): (() => void)[] {
    if (state.waiting !== undefined) return state.waiting;
    state.waiting = [];
    // Node hands over the calls of one read in ticks. The microtasks, which check their tokens, run after all of them.
    queueMicrotask(() => process.nextTick(check, connection));
    return state.waiting;
  }

  function check(connection: Connection): void {
    const state = limited.get(connection);
    if (state === undefined) return;
    const { waiting = [] } = state;
    state.waiting = undefined;
    // Even if all earlier calls are answered by now.
    if (waiting.length > 0) end(connection);
  }

  return {
    /** Adds an accepted connection. */
    add: (connection: Connection): void => {
      const timer = setTimeout(() => endGently(connection), timeoutMs).unref();
      limited.set(connection, { timer });
      const [oldest] = limited.keys();
      if (limited.size > unauthenticatedMax.connections) end(oldest);
    },
    /** Runs an open call of a connection; after the first few only once the connection is authenticated. */
    run: (connection: Connection, call: () => void) => {
      const state = limited.get(connection);
      if (state === undefined) return call();
      const waiting = checkSoon(connection, state);
      if (connection.open.calls.length > unauthenticatedMax.calls) waiting.push(call);
      else call();
    },
    /** Removes a connection, because one of its calls has a valid token, and runs the calls that waited. */
    identify: (connection: Connection): void => {
      const waiting = limited.get(connection)?.waiting ?? [];
      forget(connection);
      for (const call of waiting) call();
    },
    forget,
  };
}

/** A call that is carried out. */
export interface CarriedOut {
  readonly open: OpenCall;
  /** Records that the call has a valid token. */
  identify(caller: string): void;
}

/** How long connections last, in milliseconds. */
export interface ConnectionTimeouts {
  /** While no byte moves, for HTTP/2; see `endWhenIdle`. */
  readonly idleMs: number;
  /** Without a valid token. */
  readonly unauthenticatedMs: number;
}

/** Keeps the open connections; `createUnauthenticatedConnections` limits those without a valid token. */
export function createConnections(
  { idleMs, unauthenticatedMs }: ConnectionTimeouts,
  openCalls: OpenCalls,
  clientOf: ClientOf,
) {
  const connections = new Set<Connection>();
  const byCarrier = new WeakMap<object, Connection>();
  const unauthenticated = createUnauthenticatedConnections(unauthenticatedMs);

  return {
    /** Adds an accepted connection. */
    add: (socket: Socket): void => {
      const open = openCalls.connect({
        callsMax: callsPerConnectionMax,
        listener: 'internal',
        clientOf: (headers) => clientOf(connection.socket, headers),
        cutOff: () => {
          unauthenticated.forget(connection);
          cutOff(connection);
        },
      });
      const connection: Connection = { socket, open };
      byCarrier.set(socket, connection);
      connections.add(connection);
      socket.once('close', () => {
        open.end();
        unauthenticated.forget(connection);
        connections.delete(connection);
        // Unacknowledged settings refer to the session, this map to its socket, the socket to the native session, and that to
        // the settings: a circle that is never collected.
        if (connection.session !== undefined) byCarrier.delete(connection.session);
      });
      unauthenticated.add(connection);
    },
    /** Replaces the socket of a connection after its TLS handshake. */
    secure: (socket: Socket, secured: Socket): void => {
      const connection = byCarrier.get(socket);
      if (connection === undefined) return;
      connection.socket = secured;
      byCarrier.set(secured, connection);
    },
    /** Records that a connection is HTTP/2. */
    addSession: (socket: Socket, session: ServerHttp2Session): void => {
      const connection = byCarrier.get(socket);
      if (connection === undefined) return;
      connection.session = session;
      byCarrier.set(session, connection);
      endWhenIdle(connection, session, idleMs);
    },
    /**
     * Counts a call until its response is sent, and runs it: at once, or when its connection is authenticated and, over HTTP/1.1,
     * the earlier calls are answered. If the connection ends before, the call never runs.
     */
    begin: (request: AnyRequest, response: CountedAnyResponse, run: (call: CarriedOut) => void): void => {
      const stream = 'stream' in request ? request.stream : undefined;
      const connection = byCarrier.get(stream?.session ?? request.socket);
      // Node still hands over requests that it read after the end of the connection.
      if (connection === undefined || !connection.socket.writable) return;
      const open = connection.open.begin(request, response);
      if (open === undefined) return;
      const identify = (caller: string) => {
        open.identify(caller);
        unauthenticated.identify(connection);
      };
      const work = () => run({ open, identify });
      unauthenticated.run(connection, () => connection.open.carryOut(open, work));
    },
    /** Whether an HTTP/1.1 connection waits for no response, except to a call that is still being sent. */
    owesNothing: (socket: Socket): boolean => {
      const calls = byCarrier.get(socket)?.open.calls ?? [];
      return calls.every(({ response: { headersSent, req } }) => !headersSent && !req.complete);
    },
    /** Sends GOAWAY on HTTP/2 connections: they end once their calls are answered. */
    drain: (): void => {
      for (const { session } of connections) session?.close();
    },
    /** Closes all connections at once. */
    destroy: (): void => {
      for (const { socket } of connections) socket.destroy();
    },
  };
}
