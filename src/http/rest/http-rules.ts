import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { ApiError, incomplete } from '../../domain/reason.ts';
import { framingFault } from '../listen/request-head.ts';
import type { Answer } from './envelope.ts';
import { sentHeader } from './sent-headers.ts';
import { lingerMs } from './unread-body.ts';

/** Bounds of a request of HTTP/1.1, whatever it asks for. */
export const requestLimits = {
  /**
   * Headers; Apache httpd and Tomcat take as many by default. Node refuses a request that has more since 26.5.1; before, it
   * dropped those beyond.
   */
  headers: 100,
  /** The request line and all headers, in bytes. */
  headBytes: 16_384,
  /** How long a client may take to send it whole, in milliseconds. */
  wholeMs: 30_000,
} as const;

/** Checks the headers that belong to HTTP itself. Throws BAD_REQUEST_TARGET for Host and Transfer-Encoding. */
export function checkHead(request: IncomingMessage): void {
  const hosts = sentHeader(request, 'host').length;
  if (hosts > 1) throw badRequest('The header Host must be sent once.');
  if (hosts === 0 && request.httpVersion === '1.1') {
    throw badRequest('An HTTP/1.1 request needs a Host header.');
  }
  const fault = framingFault(request);
  if (fault !== undefined) throw badRequest(fault);
}

/** What the error of Node's HTTP parser with this code means for the client that sent the bytes. */
export function parserError(code: string | undefined): ApiError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return incomplete(requestLimits.wholeMs);
    case 'HPE_HEADER_OVERFLOW': {
      const { headers, headBytes } = requestLimits;
      const rule = `more than ${headers} headers, or they and its line are longer than ${headBytes / 1_024} KiB`;
      return badRequest(`The request has ${rule}: send fewer.`);
    }
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return new ApiError('BODY_TOO_LARGE', 'The chunk extensions of the body are too long.');
    default:
      return badRequest('The bytes received are not an HTTP/1.1 request that this service takes.');
  }
}

/** Answers on a connection that has no request to answer to, and ends it. */
export function endWithAnswer(socket: Socket, { status, headers, body }: Answer, requestId: string): void {
  const lines = Object.entries({
    ...headers,
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': requestId,
    Connection: 'close',
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} Refused\r\n${lines.join('')}\r\n${body}`);
  // A peer that keeps its side open would keep the socket for ever.
  socket.setTimeout(lingerMs, () => socket.destroy());
}

function badRequest(message: string): ApiError {
  return new ApiError('BAD_REQUEST_TARGET', message);
}
