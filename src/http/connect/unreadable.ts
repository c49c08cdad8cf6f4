import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { ApiError, incomplete, reasons } from '../../domain/reason.ts';
import { headerBytesMax, lingerMs, requestMs } from './connection.ts';
import { toConnectError } from './errors.ts';

/** What the error of Node's HTTP/1.1 parser with this code means for the client that sent the bytes. */
export function unreadableError(code: string | undefined): ApiError {
  switch (code) {
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return incomplete(requestMs);
    case 'HPE_HEADER_OVERFLOW': {
      const rule = `too many headers, or they and its line are longer than ${headerBytesMax / 1_024} KiB`;
      return new ApiError('BAD_REQUEST_TARGET', `The request has ${rule}: send fewer.`);
    }
    default:
      return new ApiError('BAD_REQUEST_TARGET', 'The bytes received are no request of HTTP/1.1 or HTTP/2.');
  }
}

/** Answers on a connection that owes no other answer with an error of Connect, and ends it; the HTTP status. */
export function endWithError(socket: Socket, apiError: ApiError, requestId: string): number {
  const status = reasons[apiError.reason].http;
  const body = errorToJsonBytes(toConnectError(apiError, requestId), undefined);
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json',
    `Content-Length: ${body.length}`,
    `X-Request-Id: ${requestId}`,
    'Connection: close',
  ];
  socket.write(`${head.join('\r\n')}\r\n\r\n`);
  socket.end(body);
  // A peer that keeps its side open would keep the socket for ever.
  setTimeout(() => socket.destroy(), lingerMs).unref();
  return status;
}
