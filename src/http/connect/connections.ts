import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { ClientOf } from '../listen/clients.ts';
import type { AnyRequest, CountedAnyResponse, OpenCall, OpenCalls } from '../listen/open-calls.ts';
import { type Connection, callsPerConnectionMax, cutOff, endWhenIdle } from './connection.ts';
import { createUnauthenticatedConnections } from './unauthenticated.ts';

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

/** The open connections of a listener. */
export interface Connections {
  /** Adds an accepted connection. */
  add(socket: Socket): void;
  /** Replaces the socket of a connection after its TLS handshake. */
  secure(socket: Socket, secured: Socket): void;
  /** Records that a connection is HTTP/2. */
  addSession(socket: Socket, session: ServerHttp2Session): void;
  /**
   * Counts a call until its response is sent, and runs it: at once, or when its connection is authenticated and, over HTTP/1.1,
   * the earlier calls are answered. If the connection ends before, the call never runs.
   */
  begin(request: AnyRequest, response: CountedAnyResponse, run: (call: CarriedOut) => void): void;
  /** Whether an HTTP/1.1 connection waits for no response, except to a call that is still being sent. */
  owesNothing(socket: Socket): boolean;
  /** Sends GOAWAY on HTTP/2 connections: they end once their calls are answered. */
  drain(): void;
  /** Closes all connections at once. */
  destroy(): void;
}

/** Keeps the open connections; `createUnauthenticatedConnections` limits those without a valid token. */
export function createConnections(
  { idleMs, unauthenticatedMs }: ConnectionTimeouts,
  openCalls: OpenCalls,
  clientOf: ClientOf,
): Connections {
  const connections = new Set<Connection>();
  const byCarrier = new WeakMap<object, Connection>();
  const unauthenticated = createUnauthenticatedConnections(unauthenticatedMs);

  return {
    add: (socket) => {
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
    secure: (socket, secured) => {
      const connection = byCarrier.get(socket);
      if (connection === undefined) return;
      connection.socket = secured;
      byCarrier.set(secured, connection);
    },
    addSession: (socket, session) => {
      const connection = byCarrier.get(socket);
      if (connection === undefined) return;
      connection.session = session;
      byCarrier.set(session, connection);
      endWhenIdle(connection, session, idleMs);
    },
    begin: (request, response, run) => {
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
    owesNothing: (socket) => {
      const calls = byCarrier.get(socket)?.open.calls ?? [];
      return calls.every(({ response: { headersSent, req } }) => !headersSent && !req.complete);
    },
    drain: () => {
      for (const { session } of connections) session?.close();
    },
    destroy: () => {
      for (const { socket } of connections) socket.destroy();
    },
  };
}
