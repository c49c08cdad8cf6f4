import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { OpenConnection } from '../listen/open-calls.ts';

/** The headers of a request, in bytes. No honest caller comes near. */
export const headerBytesMax = 16_384;
/** Calls at the same time on one connection. */
export const callsPerConnectionMax = 100;
/** Calls that a client may reset on one connection before their answers: at once, and from then on each second. */
export const resetsMax = { atOnce: 2 * callsPerConnectionMax, perS: callsPerConnectionMax } as const;
/** How long a client may take over a whole request that is no stream, in milliseconds. */
export const requestMs = 30_000;
/** How long a peer may take over an end that it was told of, in milliseconds. */
export const lingerMs = 1_000;

/** A connection that was accepted. */
export interface Connection {
  /** The connection, or what secures it once its handshake is done. */
  socket: Socket;
  /** Once it is known to speak HTTP/2. */
  session?: ServerHttp2Session;
  /** Its open calls. */
  readonly open: OpenConnection;
}

/** Ends a connection at once. */
export function cutOff({ session, socket }: Connection): void {
  // The session first: it lets go of its streams at once, and reads no more of what came with them.
  session?.destroy();
  socket.destroy();
}

/** Lets a connection end, and ends it without its peer if that reads nothing or lets no answer through. */
export function endGently({ socket, session, open }: Connection): void {
  session?.close();
  const isIdle = session === undefined && open.calls.length === 0;
  setTimeout(() => socket.destroy(), isIdle ? 0 : lingerMs).unref();
}

/**
 * Ends a connection of HTTP/2 on which nothing moves for `idleMs`, unless it has open calls: then its peer is asked whether it
 * is still there (PING of HTTP/2), and has `idleMs` to answer.
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
 * Clears the timer that keeps a session in memory until it runs out. Node does not: `setTimeout` does nothing once a
 * session is destroyed, and Node calls it after that.
 */
function clearIdleTimer(session: ServerHttp2Session): void {
  session.setTimeout.call(Object.create(session, { destroyed: { value: false } }), 0);
}
