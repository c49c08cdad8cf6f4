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
import type { RequestEvent } from '../../api/call-observer.ts';
import { ApiError, incomplete, type Reason, toApiError } from '../../domain/reason.ts';
import type { AnyRequest } from '../listen/open-calls.ts';
import { toConnectError } from './errors.ts';

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
  // The reader of the message gets this error and responds with it.
  const reject = (apiError: ApiError) =>
    request?.complete || request?.emit('error', connectErrorOf(values, apiError));
  const onAbort = () => {
    clearTimeout(timeout);
    if (isDeadlineOver(signal)) reject(deadlineError());
  };
  const timeout = setTimeout(() => {
    // Over HTTP/1.1 the error aborts the call at once.
    signal.removeEventListener('abort', onAbort);
    reject(incomplete(arrivalMs));
  }, arrivalMs);
  signal.addEventListener('abort', onAbort, { once: true });
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
  // The rest of such a message is about the library's parser.
  const isUndecoded = error.rawMessage.startsWith('parse binary: ');
  const undecoded = `The message cannot be decoded: it must be ${input.typeName} in Protobuf, its texts in UTF-8.`;
  return reason && new ApiError(reason, isUndecoded ? undecoded : error.rawMessage);
}
