import type { ServerHttp2Session } from 'node:http2';
import type { Socket } from 'node:net';
import type { AnyRequest, AnyResponse } from './any-http.ts';
import { type Connection, callsPerConnectionMax, cutOff, endWhenIdle } from './connection.ts';
import { createUnidentified } from './unidentified.ts';

/** A call whose answer has not left. */
export interface OpenCall {
  /** What its connection goes over. */
  readonly socket: Socket;
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
  /** Tells that a connection is secured: by what it goes on. */
  secure(socket: Socket, secured: Socket): void;
  /** Tells that a connection speaks HTTP/2. */
  addSession(socket: Socket, session: ServerHttp2Session): void;
  /**
   * Counts a call until its answer has left, and has it carried out: at once, or when its connection is identified; never
   * if that is ended before.
   */
  begin(request: AnyRequest, response: AnyResponse, carryOut: (call: OpenCall) => void): void;
  /** Whether a connection of HTTP/1.1 owes no answer, but perhaps that to a call that is still being sent. */
  owesNothing(socket: Socket): boolean;
  /** Tells the peers of HTTP/2 to end their connections once their calls are answered. */
  drain(): void;
  /** Ends all connections at once. */
  destroy(): void;
}

/** Counts the open calls of connections, and bounds them: of one that is unidentified as `createUnidentified` says. */
export function createConnections({ idleMs, unidentifiedMs }: ConnectionPatience): Connections {
  const connections = new Set<Connection>();
  const byCarrier = new WeakMap<object, Connection>();
  const unidentified = createUnidentified(unidentifiedMs);

  function count(connection: Connection, request: AnyRequest, response: AnyResponse): void {
    // Counted, for a peer that does not acknowledge the settings of HTTP/2 is not held to their limit.
    const headerCharacters = charactersOf(request.rawHeaders);
    connection.calls.add(response);
    connection.headerCharacters += headerCharacters;
    response.once('close', () => {
      connection.calls.delete(response);
      connection.headerCharacters -= headerCharacters;
      if (connection.calls.size === 0) unidentified.callsEnded(connection);
    });
  }

  return {
    add: (socket) => {
      const connection: Connection = { socket, calls: new Set(), headerCharacters: 0 };
      byCarrier.set(socket, connection);
      connections.add(connection);
      socket.once('close', () => {
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
      count(connection, request, response);
      // HTTP/1.1 has no limit of its own to requests that are sent ahead of their answers.
      if (connection.calls.size > callsPerConnectionMax) {
        unidentified.forget(connection);
        cutOff(connection);
      }
      if (connection.socket.destroyed) return;
      const { socket } = connection;
      const identify = () => unidentified.identify(connection);
      unidentified.run(connection, () => carryOut({ socket, identify }));
    },
    owesNothing: (socket) => {
      const calls = byCarrier.get(socket)?.calls.values() ?? [];
      return Iterator.from(calls).every(({ headersSent, req }) => !headersSent && !req.complete);
    },
    drain: () => {
      for (const { session } of connections) session?.close();
    },
    destroy: () => {
      for (const { socket } of connections) socket.destroy();
    },
  };
}

function charactersOf(texts: readonly string[]): number {
  let characters = 0;
  for (const { length } of texts) characters += length;
  return characters;
}
