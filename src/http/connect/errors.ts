import type { Socket } from 'node:net';
import type { DescMessage, DescMethod } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  type HandlerContext,
  type Interceptor,
  type StreamRequest,
} from '@connectrpc/connect';
import { encodeEnvelope } from '@connectrpc/connect/protocol';
import { endStreamFlag, endStreamToJson, errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import {
  BadRequestSchema,
  ErrorInfoSchema,
  RetryInfoSchema,
} from '../../../gen/google/rpc/error_details_pb.ts';
import type { RequestEvent } from '../../api/call-observer.ts';
import {
  ApiError,
  cancelled,
  incomplete,
  type Reason,
  reasons,
  type StatusCode,
  toApiError,
} from '../../domain/reason.ts';
import { ValidationError } from '../../domain/violation.ts';
import { endConnection } from '../listen/http1-server.ts';
import type { AnyRequest, AnyResponse } from '../listen/open-calls.ts';
import { headerBytesMax, requestMs } from './connections.ts';

const codes: Record<StatusCode, Code> = {
  unauthenticated: Code.Unauthenticated,
  permission_denied: Code.PermissionDenied,
  resource_exhausted: Code.ResourceExhausted,
  invalid_argument: Code.InvalidArgument,
  not_found: Code.NotFound,
  unimplemented: Code.Unimplemented,
  failed_precondition: Code.FailedPrecondition,
  unavailable: Code.Unavailable,
  aborted: Code.Aborted,
  internal: Code.Internal,
  deadline_exceeded: Code.DeadlineExceeded,
  canceled: Code.Canceled,
  data_loss: Code.DataLoss,
};

/**
 * An error as typed clients get it: status code, message, the reason in google.rpc.ErrorInfo, the invalid fields of `input` in
 * google.rpc.BadRequest, and the time to wait in google.rpc.RetryInfo and in the header Retry-After, in seconds. The default code
 * is the one of the reason.
 */
export function toConnectError(
  apiError: ApiError,
  requestId: string,
  code: Code = codes[reasons[apiError.reason].code],
  input?: DescMessage,
): ConnectError {
  const {
    reason,
    message,
    hints: { retryAfterS, allow },
  } = apiError;
  const info = { reason, domain: 'artseal', metadata: { requestId } };
  const error = new ConnectError(message, code, undefined, [{ desc: ErrorInfoSchema, value: info }]);
  if (apiError instanceof ValidationError) {
    const fieldViolations = apiError.violations.map(({ field, rule }) => ({
      field: protoName(field, input),
      description: rule,
    }));
    error.details.push({ desc: BadRequestSchema, value: { fieldViolations } });
  }
  if (allow !== undefined) error.metadata.set('Allow', allow.join(', '));
  if (retryAfterS !== undefined) {
    error.metadata.set('Retry-After', String(retryAfterS));
    error.details.push({ desc: RetryInfoSchema, value: { retryDelay: { seconds: BigInt(retryAfterS) } } });
  }
  return error;
}

/** The name of a field in the proto; unchanged if the message has no such field. */
function protoName(path: string, input: DescMessage | undefined): string {
  const [first = '', ...rest] = path.split('.');
  const name = input?.fields.find(({ jsonName }) => jsonName === first)?.name ?? first;
  return [name, ...rest].join('.');
}

/**
 * Rejects a call before the library handles it: for gRPC and gRPC-Web in headers alone ("Trailers-Only" of gRPC over HTTP/2),
 * for a stream of Connect in its end, otherwise as an error of Connect. Discards the rest of the request. `status` is the HTTP status of a response that belongs to no
 * RPC protocol, `code` differs from that of the reason.
 */
export function sendError(
  request: AnyRequest,
  response: AnyResponse,
  event: RequestEvent,
  apiError: ApiError,
  { status, code }: { readonly status?: number; readonly code?: Code } = {},
): void {
  event.apiError = apiError;
  const error = toConnectError(apiError, event.requestId, code);
  const type = request.headers['content-type'] ?? '';
  if (status === undefined && type.startsWith('application/grpc')) answerInHeaders(response, type, error);
  else if (status === undefined && type.startsWith('application/connect+')) endStream(response, type, error);
  else writeError(response, status ?? reasons[apiError.reason].http, error);
  request.resume();
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
  { allowedMethods }: { readonly allowedMethods: readonly string[] },
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

/** Answers with a stream that only has its end (Connect protocol, "Streaming-Response"). */
function endStream(response: AnyResponse, type: string, error: ConnectError): void {
  const end = JSON.stringify(endStreamToJson(error.metadata, error, undefined));
  response.setHeader('Content-Type', type);
  response.end(encodeEnvelope(endStreamFlag, new TextEncoder().encode(end)));
}

function writeError(response: AnyResponse, status: number, error: ConnectError): void {
  response.statusCode = status;
  response.setHeader('Content-Type', 'application/json');
  for (const [name, value] of error.metadata) response.setHeader(name, value);
  const body = errorToJsonBytes(error, undefined);
  response.setHeader('Content-Length', body.length);
  response.end(body);
}

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
  const headers = { 'Content-Type': 'application/json', 'X-Request-Id': requestId };
  endConnection(socket, status, headers, body);
  return status;
}

/** What a call carries through the Connect library. */
export const callKeys = {
  event: createContextKey<RequestEvent>({ requestId: '' }),
  request: createContextKey<AnyRequest | undefined>(undefined),
  /** The type of its message. */
  input: createContextKey<DescMessage | undefined>(undefined),
  /** Whether its operation has begun. */
  hasBegun: createContextKey(false),
  /** Frees its slot among the reads of its caller. */
  freeSlot: createContextKey(() => {}),
};

/** The reasons of errors that the Connect library itself makes before an operation begins, by their codes. */
const libraryReasons: ReadonlyMap<Code, Reason> = new Map([
  [Code.ResourceExhausted, 'BODY_TOO_LARGE'],
  [Code.InvalidArgument, 'VALIDATION_FAILED'],
  // The codes for a binary message that cannot be decoded, one that ends early, and none or two in place of one.
  [Code.Internal, 'VALIDATION_FAILED'],
  [Code.DataLoss, 'VALIDATION_FAILED'],
  [Code.Unimplemented, 'VALIDATION_FAILED'],
]);

/**
 * Rejects a call with TIMEOUT if its message has not arrived at its deadline, or `arrivalMs` after its head. The library waits
 * for the message even after the deadline.
 */
export function limitArrival({ signal, values }: HandlerContext, arrivalMs: number): void {
  if (isDeadlineOver(signal)) throw connectErrorOf(values, deadlineError());
  const request = values.get(callKeys.request);
  if (request?.complete) return;
  // The reader of the message gets this error and responds with it.
  const reject = (apiError: ApiError) =>
    request?.complete || request?.emit('error', connectErrorOf(values, apiError));
  const onAbort = () => {
    clearTimeout(timeout);
    if (isDeadlineOver(signal)) reject(deadlineError());
  };
  const timeout = setTimeout(() => {
    // The library will abort the signal with the error from `reject`.
    signal.removeEventListener('abort', onAbort);
    reject(incomplete(arrivalMs));
  }, arrivalMs);
  signal.addEventListener('abort', onAbort, { once: true });
}

/** Throws TIMEOUT if the deadline of a call is over, and CANCELLED if its client has broken it off. */
export function checkNotAborted(signal: AbortSignal): void {
  if (isDeadlineOver(signal)) throw deadlineError();
  if (signal.aborted) throw cancelled();
}

/** Rejects with TIMEOUT at the deadline of a call. */
export function deadlineOver(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => {
    if (isDeadlineOver(signal)) reject(deadlineError());
  };
  onAbort();
  signal.addEventListener('abort', onAbort, { once: true });
  return promise;
}

function isDeadlineOver({ reason }: AbortSignal): boolean {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}

function deadlineError(): ApiError {
  return new ApiError('TIMEOUT', 'The deadline of the call is over; it may still be carried out.');
}

/** The error of a call as its client gets it; also records it for the log. */
function connectErrorOf(values: ContextValues, error: unknown): ConnectError {
  // An error of the library comes from reading messages for a method; `explainLibraryError` gives it its reason.
  if (error instanceof ConnectError) return error;
  const event = values.get(callKeys.event);
  event.apiError = toApiError(error);
  return toConnectError(event.apiError, event.requestId, undefined, values.get(callKeys.input));
}

/** Gives the errors of methods their reasons; an unknown error is INTERNAL. */
export const explainErrors: Interceptor = (next) => async (request) => {
  try {
    const response = await next(request);
    return response.stream ? { ...response, message: explained(request, response.message) } : response;
  } catch (error) {
    throw connectErrorOf(request.contextValues, error);
  }
};

/** The messages of a stream. At its deadline a method ends its stream like any other; this rejects it with TIMEOUT. */
async function* explained<T>(
  { contextValues, signal }: Pick<StreamRequest, 'contextValues' | 'signal'>,
  messages: AsyncIterable<T>,
): AsyncGenerator<T> {
  try {
    for await (const message of messages) {
      try {
        yield message;
      } catch {
        // The message could not be written because the client is gone. The method did not fail.
        return;
      }
    }
    if (isDeadlineOver(signal)) throw deadlineError();
  } catch (error) {
    throw connectErrorOf(contextValues, error);
  }
}

/** Gives an error of the library its reason. The library aborts the call with the error before it writes it. */
export function explainLibraryError({ signal, values, method, responseHeader }: HandlerContext): void {
  signal.addEventListener('abort', () => {
    const error: unknown = signal.reason;
    if (!(error instanceof ConnectError) || error.details.length > 0) return;
    // The library also makes an error for a client that reset its call.
    const request = values.get(callKeys.request);
    if (request !== undefined && isReset(request)) return;
    const apiError = reasonOf(error, method);
    if (apiError === undefined) return;
    // Once the operation has begun, the error is one of its response.
    const cause = values.get(callKeys.hasBegun) ? new Error(error.message) : apiError;
    // The known compressions. The library takes the headers of a protocol from here, not from the error.
    for (const [name, value] of error.metadata) responseHeader.set(name, value);
    Object.assign(error, connectErrorOf(values, cause));
  });
}

/** Whether a client has reset its call. */
function isReset(request: AnyRequest): boolean {
  if ('stream' in request) return request.stream.aborted;
  // A request that was not read to its end has no socket any more, although Node's types have one.
  const socket: AnyRequest['socket'] | null = request.socket;
  return socket?.destroyed === true;
}

/** The headers in which an error names the known compressions, one for each protocol. */
const compressionHeaders = ['Accept-Encoding', 'Connect-Accept-Encoding', 'grpc-accept-encoding'];

function reasonOf(error: ConnectError, { input }: DescMethod): ApiError | undefined {
  if (error.cause instanceof ApiError) return error.cause;
  if (compressionHeaders.some((name) => error.metadata.has(name))) {
    return new ApiError('UNSUPPORTED_MEDIA_TYPE', error.rawMessage);
  }
  const reason = libraryReasons.get(error.code);
  const [, bytesMax] = /larger than configured readMaxBytes (\d+)/.exec(error.rawMessage) ?? [];
  if (reason && bytesMax) return new ApiError(reason, `The message must have at most ${bytesMax} bytes.`);
  // The rest of such a message is about the library's parser.
  const isUndecoded = error.rawMessage.startsWith('parse binary: ');
  const undecoded = `The message cannot be decoded: it must be ${input.typeName} in Protobuf, its texts in UTF-8.`;
  return reason && new ApiError(reason, isUndecoded ? undecoded : error.rawMessage);
}
