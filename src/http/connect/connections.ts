import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { AnyRequest } from '../listen/any-http.ts';
import type { ClientOf } from '../listen/clients.ts';
import type { CountedAnyResponse, OpenCall, OpenCalls } from '../listen/open-calls.ts';
import { type Connection, callsPerConnectionMax, cutOff, endWhenIdle } from './connection.ts';
import { createUnauthenticatedConnections } from './unauthenticated.ts';

/** A call that is carried out. */
export interface CarriedOut {
  readonly open: OpenCall;
  /** Tells that the call came with a valid token. */
  identify(caller: string): void;
}

/** How long connections last, in milliseconds. */
export interface ConnectionTimeouts {
  /** Without anything moving on it, for one of HTTP/2; see `endWhenIdle`. */
  readonly idleMs: number;
  /** Without a valid token, whatever is sent. */
  readonly unauthenticatedMs: number;
}

/** The open connections of a listener. */
export interface Connections {
  /** Takes in a connection that was accepted. */
  add(socket: Socket): void;
  /** Tells that a connection is secured: by what it goes on. */
  secure(socket: Socket, secured: Socket): void;
  /** Tells that a connection speaks HTTP/2. */
  addSession(socket: Socket, session: ServerHttp2Session): void;
  /**
   * Counts a call until its answer has left, and has it carried out: at once, or when its connection is identified and, over
   * HTTP/1.1, the calls before it are answered; never if that is ended before.
   */
  begin(request: AnyRequest, response: CountedAnyResponse, carryOut: (call: CarriedOut) => void): void;
  /** Whether a connection of HTTP/1.1 owes no answer, but perhaps that to a call that is still being sent. */
  owesNothing(socket: Socket): boolean;
  /** Tells the peers of HTTP/2 to end their connections once their calls are answered. */
  drain(): void;
  /** Ends all connections at once. */
  destroy(): void;
}

/** Keeps the open connections; those that are unidentified as `createUnauthenticatedConnections` says. */
export function createConnections(
  { idleMs, unauthenticatedMs }: ConnectionTimeouts,
  openCalls: OpenCalls,
  clientOf: ClientOf,
): Connections {
  const connections = new Set<Connection>();
  const byCarrier = new WeakMap<object, Connection>();
  const unidentified = createUnauthenticatedConnections(unauthenticatedMs);

  return {
    add: (socket) => {
      const open = openCalls.connect({
        callsMax: callsPerConnectionMax,
        listener: 'internal',
        clientOf: (headers) => clientOf(connection.socket, headers),
        cutOff: () => {
          unidentified.forget(connection);
          cutOff(connection);
        },
      });
      const connection: Connection = { socket, open };
      byCarrier.set(socket, connection);
      connections.add(connection);
      socket.once('close', () => {
        open.end();
        unidentified.forget(connection);
        connections.delete(connection);
        // Settings that were never acknowledged keep the session, this map its socket, that the native session, and that
        // the settings: a circle that is never collected.
        if (connection.session !== undefined) byCarrier.delete(connection.session);
      });
      unidentified.add(connection);
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
    begin: (request, response, carryOut) => {
      const stream = 'stream' in request ? request.stream : undefined;
      const connection = byCarrier.get(stream?.session ?? request.socket);
      // What is read behind the end of a connection is still handed over.
      if (connection === undefined || !connection.socket.writable) return;
      const open = connection.open.begin(request, response);
      if (open === undefined) return;
      const identify = (caller: string) => {
        open.identify(caller);
        unidentified.identify(connection);
      };
      const work = () => carryOut({ open, identify });
      unidentified.run(connection, () => connection.open.carryOut(open, work));
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
