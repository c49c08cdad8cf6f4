import { Code, type ConnectError, type ConnectRouter } from '@connectrpc/connect';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { Refusal, reasons } from '../domain/reason.ts';
import type { Trace } from '../observe/trace.ts';
import { toConnectError } from '../rpc/errors.ts';
import type { AnyRequest, AnyResponse } from './any-http.ts';

/** A method with what the library knows of it. */
export type Handler = ConnectRouter['handlers'][number];

/** Answers a request that reached no protocol: as an error of Connect, with the HTTP status of its reason or another. */
export function answerRefusal(
  response: AnyResponse,
  trace: Trace,
  refusal: Refusal,
  status: number = reasons[refusal.reason].http,
): void {
  trace.refusal = refusal;
  writeError(response, status, toConnectError(refusal, trace.requestId));
}

/**
 * Answers a call of what is not there: in gRPC and gRPC-Web with UNIMPLEMENTED and no message ("Trailers-Only" of gRPC
 * over HTTP/2), in Connect with 404, which its clients read as the same.
 */
export function answerUnknownMethod(request: AnyRequest, response: AnyResponse, trace: Trace): void {
  trace.refusal = new Refusal('NOT_FOUND', 'There is no such service or method.');
  const error = toConnectError(trace.refusal, trace.requestId, Code.Unimplemented);
  const type = request.headers['content-type'] ?? '';
  if (!type.startsWith('application/grpc')) {
    writeError(response, 404, error);
    return;
  }
  // Headers that are not written before the end go out with it, in one HEADERS frame that ends the stream.
  response.statusCode = 200;
  for (const [name, value] of setTrailerStatus(new Headers({ 'Content-Type': type }), error)) {
    response.setHeader(name, value);
  }
  response.end();
}

/** What the library means that answers with a status and an empty body. */
export function refusalOfEmptyAnswer(status: number, { allowedMethods }: Handler): Refusal {
  if (status === 405) {
    const message = `This method takes ${allowedMethods.join(' and ')}.`;
    return new Refusal('METHOD_NOT_ALLOWED', message, { allow: allowedMethods });
  }
  if (status === 415) {
    const types = 'application/json or application/proto, or a type of gRPC or gRPC-Web';
    return new Refusal('UNSUPPORTED_MEDIA_TYPE', `The header Content-Type must be ${types}.`);
  }
  return new Refusal('METHOD_NOT_ALLOWED', 'This method streams both ways and needs HTTP/2.');
}

function writeError(response: AnyResponse, status: number, error: ConnectError): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json');
  for (const [name, value] of error.metadata) response.setHeader(name, value);
  response.end(errorToJsonBytes(error, undefined));
}
