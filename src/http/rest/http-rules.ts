import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, incomplete } from '../../domain/reason.ts';
import { framingFault } from '../listen/request-head.ts';
import type { HttpResponse } from './envelope.ts';
import { sentHeader } from './sent-headers.ts';
import { lingerMs } from './unread-body.ts';

/** Limits of every HTTP/1.1 request. */
export const requestLimits = {
  /** Number of headers, as in Apache httpd and Tomcat. */
  headers: 100,
  /** The request line and all headers, in bytes. */
  headBytes: 16_384,
  /** How long a client may take to send the whole request, in milliseconds. */
  wholeMs: 30_000,
} as const;

/** Checks Host and Transfer-Encoding. Throws BAD_REQUEST_TARGET. */
export function checkHead(request: IncomingMessage): void {
  const hosts = sentHeader(request, 'host').length;
  if (hosts > 1) throw badRequest('The header Host must be sent once.');
  if (hosts === 0 && request.httpVersion === '1.1') {
    throw badRequest('An HTTP/1.1 request needs a Host header.');
  }
  const fault = framingFault(request);
  if (fault !== undefined) throw badRequest(fault);
}

/** The ApiError for an error code of Node's HTTP parser. */
export function parserError(code: string | undefined): ApiError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return incomplete(requestLimits.wholeMs);
    case 'HPE_HEADER_OVERFLOW': {
      const { headers, headBytes } = requestLimits;
      const rule = `more than ${headers} headers, or its line and headers are longer than ${headBytes / 1_024} KiB`;
      return badRequest(`The request has ${rule}: send fewer.`);
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('BODY_TOO_LARGE', 'The chunk extensions of the body are too long.');
    default:
      return badRequest('The received bytes are not an HTTP/1.1 request that this service accepts.');
  }
}

/** Writes a response to a connection without a parsed request, and closes the connection. */
export function endWithResponse(
  socket: Socket,
  { status, headers, body }: HttpResponse,
  requestId: string,
): void {
  const lines = Object.entries({
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': requestId,
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Rejected\r\n${lines.join('')}\r\n${body}`);
  // A peer that does not close its half would keep the socket open forever.
  socket.setTimeout(lingerMs, () => socket.destroy());
}

function badRequest(message: string): ApiError {
  return new ApiError('BAD_REQUEST_TARGET', message);
}
