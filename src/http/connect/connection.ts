import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { OpenConnection } from '../listen/open-calls.ts';

/** The largest headers of a request, in bytes, far above those of any real client. */
export const headerBytesMax = 16_384;
/** Calls at the same time on one connection. */
export const callsPerConnectionMax = 100;
/** Calls that a client may reset on one connection before their responses: at once, and then each second. */
export const resetsMax = { atOnce: 2 * callsPerConnectionMax, perS: callsPerConnectionMax } as const;
/** How long a client may take over a whole request that is not a stream, in milliseconds. */
export const requestMs = 30_000;
/** How long a client may take to close its connection after the server has ended it, in milliseconds. */
export const lingerMs = 1_000;

/** An accepted connection. */
export interface Connection {
  /** The TCP socket; the TLS socket after a handshake. */
  socket: Socket;
  /** The session of an HTTP/2 connection. */
  session?: ServerHttp2Session;
  /** Its open calls. */
  readonly open: OpenConnection;
}

/** Closes a connection at once. */
export function cutOff({ session, socket }: Connection): void {
  // The session first: it frees its streams at once and reads nothing more.
  session?.destroy();
  socket.destroy();
}

/** Lets a connection end, and closes it if the client does not within `lingerMs`. */
export function endGently({ socket, session, open }: Connection): void {
  session?.close();
  const isIdle = session === undefined && open.calls.length === 0;
  setTimeout(() => socket.destroy(), isIdle ? 0 : lingerMs).unref();
}

/**
 * Ends an HTTP/2 connection on which no byte moves for `idleMs`. If it has open calls, the server sends a PING first, and the
 * client has `idleMs` to answer.
 */
export function endWhenIdle(connection: Connection, session: ServerHttp2Session, idleMs: number): void {
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
