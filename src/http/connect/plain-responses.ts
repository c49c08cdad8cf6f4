import { Code, type ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import type { RequestEvent } from '../../api/call-observer.ts';
import { ApiError, reasons } from '../../domain/reason.ts';
import type { AnyRequest, AnyResponse } from '../listen/open-calls.ts';
import { toConnectError } from './errors.ts';

/** A method as the Connect library serves it. */
export type Handler = ConnectRouter['handlers'][number];

/** What differs from the status and code of the reason. */
interface Difference {
  /** The HTTP status of a response that belongs to no RPC protocol. */
  readonly status?: number;
  readonly code?: Code;
}

/**
 * Rejects a call before the library handles it: for gRPC and gRPC-Web in headers alone ("Trailers-Only" of gRPC over HTTP/2),
 * otherwise as an error of Connect. Discards the rest of the request.
 */
export function sendError(
  request: AnyRequest,
  response: AnyResponse,
  event: RequestEvent,
  apiError: ApiError,
  { status, code }: Difference = {},
): void {
  event.apiError = apiError;
  const error = toConnectError(apiError, event.requestId, code);
  const type = request.headers['content-type'] ?? '';
  if (status === undefined && type.startsWith('application/grpc')) answerInHeaders(response, type, error);
  else writeError(response, status ?? reasons[apiError.reason].http, error);
  request.resume();
}

/** Rejects a call of an unknown method: UNIMPLEMENTED in gRPC; 404 in Connect, whose clients read it as UNIMPLEMENTED. */
export function answerUnknownMethod(request: AnyRequest, response: AnyResponse, event: RequestEvent): void {
  const apiError = new ApiError('NOT_FOUND', 'There is no such service or method.');
  sendError(request, response, event, apiError, { code: Code.Unimplemented });
}

function answerInHeaders(response: AnyResponse, type: string, error: ConnectError): void {
  response.statusCode = 200;
  for (const [name, value] of setTrailerStatus(new Headers({ 'Content-Type': type }), error)) {
    response.setHeader(name, value);
  }
  // Node sends headers that were not written yet with the end, in one HEADERS frame.
  response.end();
}

/** The error of an empty response of the library. Throws for an unknown status. */
export function errorOfEmptyResponse(
  status: number,
  { allowedMethods }: Pick<Handler, 'allowedMethods'>,
): ApiError {
  const methods = allowedMethods.join(' and ');
  switch (status) {
    case 405:
      return new ApiError('METHOD_NOT_ALLOWED', `This method takes ${methods}.`, { allow: allowedMethods });
    case 505: {
      const message = `This method streams both ways: it takes ${methods} over HTTP/2 only.`;
      return new ApiError('METHOD_NOT_ALLOWED', message, { allow: allowedMethods });
    }
    case 415: {
      const types = 'application/json or application/proto, or a type of gRPC or gRPC-Web';
      return new ApiError('UNSUPPORTED_MEDIA_TYPE', `The header Content-Type must be ${types}.`);
    }
    default:
      throw new Error(`The library responded with HTTP ${status} and no body.`);
  }
}

function writeError(response: AnyResponse, status: number, error: ConnectError): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json');
  for (const [name, value] of error.metadata) response.setHeader(name, value);
  const body = errorToJsonBytes(error, undefined);
  response.setHeader('Content-Length', body.length);
  response.end(body);
}
