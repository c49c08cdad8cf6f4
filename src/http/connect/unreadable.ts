import { STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { ApiError, incomplete, reasons } from '../../domain/reason.ts';
import { headerBytesMax, lingerMs, requestMs } from './connection.ts';
import { toConnectError } from './errors.ts';

/** The error for the client whose bytes made Node's HTTP/1.1 parser fail with this code. */
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

/** Sends an error of Connect on a connection that waits for no other response, and ends it. Returns the HTTP status. */
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
  // A client that keeps its half open would keep the socket.
  setTimeout(() => socket.destroy(), lingerMs).unref();
  return status;
}
