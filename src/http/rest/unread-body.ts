import type { IncomingMessage, ServerResponse } from 'node:http';
import { writeInPieces } from '../listen/counted-response.ts';
import { bodyBytesMax, bodyRejected } from './body.ts';
import type { Answer } from './envelope.ts';

/** How long what a peer goes on to send is read and thrown away once it is refused, in milliseconds. */
export const lingerMs = 2_000;

/** Whether what is left of a body is worth waiting for, so that its connection can be used again. */
export function hasSmallBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= bodyBytesMax;
}

/** Reads what is left of a body and throws it away; resolves at its end, or after `lingerMs`. */
export async function skipBody(request: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const event of ['end', 'close', bodyRejected]) request.once(event, () => resolve());
  const timeout = setTimeout(resolve, lingerMs);
  request.resume();
  await promise;
  clearTimeout(timeout);
}

/**
 * Ends an answer behind the body of its request, or after `lingerMs`, and throws that body away. Closing before would reset
 * the connection, and take the answer away from a client or proxy that sends all before it reads.
 */
export function endBehindBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: Answer['body'],
): void {
  writeInPieces(response, body, () => {
    const end = () => response.end();
    const timeout = setTimeout(end, lingerMs);
    request.once('end', end).resume();
    response.once('close', () => clearTimeout(timeout));
  });
}
