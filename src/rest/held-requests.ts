import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { bodyBytesMax } from './body.ts';

/** What all requests that are not answered yet may take together, in bytes. */
const heldBytesMax = 48 * 1_048_576;
/** What Node takes for a request, and for each header beside its text, in bytes: about. */
const overheadBytes = { request: 4_096, header: 256 } as const;

/** The requests that are not answered yet. */
export interface HeldRequests {
  /** Counts a request until its answer has left. */
  add(request: IncomingMessage, response: ServerResponse): void;
  /** Forgets a connection that is closed. */
  forget(socket: Socket): void;
}

/**
 * Keeps peers, whoever they are, from holding memory with requests that never end and answers that are never read: as soon
 * as all requests together may take too much, the connection that has had one open longest is given to `cutOff`. Were the
 * new one refused instead, whoever holds on would keep everybody else out.
 */
export function createHeldRequests(cutOff: (socket: Socket) => void): HeldRequests {
  /** By connection, in the order in which they began to hold any. */
  const held = new Map<Socket, number>();
  let sum = 0;

  function forget(socket: Socket): void {
    sum -= held.get(socket) ?? 0;
    held.delete(socket);
  }

  return {
    add: (request, response) => {
      const { socket } = request;
      const bytes = bytesOf(request);
      held.set(socket, (held.get(socket) ?? 0) + bytes);
      sum += bytes;
      response.once('close', () => {
        const left = (held.get(socket) ?? 0) - bytes;
        if (left <= 0) return forget(socket);
        held.set(socket, left);
        sum -= bytes;
      });
      for (const [longest] of held) {
        if (sum <= heldBytesMax) break;
        forget(longest);
        cutOff(longest);
      }
    },
    forget,
  };
}

/** What a request may take, with as much of a body as it announces. */
function bytesOf({ headers, rawHeaders }: IncomingMessage): number {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  const body = encoding === undefined ? Math.min(Number(length), bodyBytesMax) : bodyBytesMax;
  const overhead = overheadBytes.request + (rawHeaders.length / 2) * overheadBytes.header;
  return rawHeaders.reduce((sum, text) => sum + text.length, overhead + body);
}
