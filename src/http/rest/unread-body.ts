import type { IncomingMessage, ServerResponse } from 'node:http';
import { writeInPieces } from '../listen/counted-response.ts';
import { bodyBytesMax } from '../listen/request-head.ts';
import { bodyRejected } from './body.ts';
import type { HttpResponse } from './envelope.ts';

/** How long the server reads and discards what a client still sends after its request was rejected, in milliseconds. */
export const lingerMs = 2_000;

/** Whether a body is small enough to read to its end, so that the connection stays open for the next request. */
export function hasSmallBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] === undefined && Number(headers['content-length'] ?? 0) <= bodyBytesMax;
}

/** Discards the rest of a body; resolves at its end, or after `lingerMs`. */
export async function skipBody(request: IncomingMessage): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  for (const event of ['end', 'close', bodyRejected]) request.once(event, () => resolve());
  const timeout = setTimeout(resolve, lingerMs);
  request.resume();
  await promise;
  clearTimeout(timeout);
}

/**
 * Writes a response, discards the rest of the request's body, and ends the response at the end of that body, or after
 * `lingerMs`. Closing earlier would reset the connection, and a client or proxy that sends everything before it reads would
 * lose the response (RFC 9112, section 9.6).
 */
export function endAfterBody(
  request: IncomingMessage,
  response: ServerResponse,
  body: HttpResponse['body'],
): void {
  writeInPieces(response, body, () => {
    const end = () => response.end();
    const timeout = setTimeout(end, lingerMs);
    request.once('end', end).resume();
    response.once('close', () => clearTimeout(timeout));
  });
}
