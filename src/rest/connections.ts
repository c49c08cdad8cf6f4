import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { bodyBytesMax } from './body.ts';

/** Requests that a connection may send before it has read the answers to those before; what follows is refused. */
const requestsAheadMax = 16;
/** Requests that may wait on a connection, those refused included; with one more it is cut off. */
const requestsWaitingMax = 32;
/** What all requests that are not answered yet may take together, in bytes. */
const heldBytesMax = 48 * 1_048_576;
/** What Node takes for a request, and for each header beside its text, in bytes: about. */
const overheadBytes = { request: 4_096, header: 256 } as const;

/** A connection on which requests wait: their answers have not left yet. */
export interface Connection {
  readonly socket: Socket;
  /** How many wait. */
  requests: number;
  /** What they take together, in bytes. */
  bytes: number;
  /** The one that came last. */
  latest: IncomingMessage;
  /** Whether nothing more can be read. */
  isBroken: boolean;
}

/** Counts what the connections of a listener have under way, and cuts off those that hold too much. */
export interface Connections {
  /**
   * Counts a request until its answer has left. Undefined if nobody is there to be answered: the connection is gone, or
   * cut off for what it holds.
   */
  begin(request: IncomingMessage, response: ServerResponse): Connection | undefined;
  /** Marks a connection as broken. Undefined if no request waits on it. */
  markBroken(socket: Socket): Connection | undefined;
  /** Forgets a connection that is closed. */
  forget(socket: Socket): void;
}

/**
 * Keeps peers, whoever they are, from holding memory with requests that never end and answers that are never read: as soon
 * as all requests together may take too much, the connection on which some have waited longest is cut off. Were the new
 * one refused instead, whoever holds on would keep everybody else out. `onCutOff` is told whom, and the reason.
 */
export function createConnections(onCutOff: (socket: Socket, why: string) => void): Connections {
  /** Those on which requests wait, in the order in which they began to. */
  const connections = new Map<Socket, Connection>();
  let heldBytes = 0;

  function open(socket: Socket, latest: IncomingMessage): Connection {
    const connection = { socket, requests: 0, bytes: 0, latest, isBroken: false };
    connections.set(socket, connection);
    return connection;
  }

  function end(connection: Connection, bytes: number): void {
    // Whoever is forgotten has taken all its bytes along.
    if (!connections.has(connection.socket)) return;
    connection.requests -= 1;
    connection.bytes -= bytes;
    heldBytes -= bytes;
    if (connection.requests === 0) connections.delete(connection.socket);
  }

  function forget(socket: Socket): void {
    heldBytes -= connections.get(socket)?.bytes ?? 0;
    connections.delete(socket);
  }

  /** Ends a connection at once: only so is let go of what it sent. */
  function cutOff({ socket }: Connection, why: string): void {
    forget(socket);
    socket.destroy();
    onCutOff(socket, why);
  }

  function cutOffLongest(): void {
    for (const longest of connections.values()) {
      if (heldBytes <= heldBytesMax) return;
      cutOff(longest, 'Too much is held, and this connection has held on longest.');
    }
  }

  return {
    begin: (request, response) => {
      const { socket } = request;
      // What was read before its connection was cut off is still handed over.
      if (socket.destroyed) return undefined;
      const connection = connections.get(socket) ?? open(socket, request);
      const bytes = bytesOf(request);
      connection.requests += 1;
      connection.latest = request;
      connection.bytes += bytes;
      heldBytes += bytes;
      response.on('close', () => end(connection, bytes));
      if (connection.requests > requestsWaitingMax) {
        cutOff(connection, 'Far too many requests were sent ahead of their answers.');
      }
      if (heldBytes > heldBytesMax) cutOffLongest();
      return socket.destroyed ? undefined : connection;
    },
    markBroken: (socket) => {
      const connection = connections.get(socket);
      if (connection !== undefined) connection.isBroken = true;
      return connection;
    },
    forget,
  };
}

/** Whether so many requests wait on a connection that the one that came last is refused. */
export function isAhead({ requests }: Connection): boolean {
  return requests > requestsAheadMax;
}

/** Whether the answer to a request is the last of its connection. */
export function isLast({ isBroken, latest }: Connection, request: IncomingMessage): boolean {
  return isBroken && latest === request;
}

/** What a request may take, with as much of a body as it announces. */
function bytesOf({ headers, rawHeaders }: IncomingMessage): number {
  let bytes = overheadBytes.request + (rawHeaders.length / 2) * overheadBytes.header;
  for (const text of rawHeaders) bytes += text.length;
  if (headers['transfer-encoding'] !== undefined) return bytes + bodyBytesMax;
  const length = headers['content-length'];
  return length === undefined ? bytes : bytes + Math.min(Number(length), bodyBytesMax);
}
