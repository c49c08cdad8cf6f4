import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
} from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ContextValues,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type Interceptor,
  type MethodImpl,
  type StreamRequest,
} from '@connectrpc/connect';
import {
  compressionGzip,
  universalRequestFromNodeRequest,
  universalResponseToNodeResponse,
} from '@connectrpc/connect-node';
import { file_google_rpc_error_details } from '../../../gen/google/rpc/error_details_pb.ts';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { Health } from '../../../gen/health/v1/health_pb.ts';
import type { BearerCheck } from '../../api/bearer.ts';
import { isStreaming, isUnary, isWriting, operationName } from '../../api/operation.ts';
import type { Calls } from '../../api/pipeline.ts';
import { type RequestEvent, setCaller } from '../../api/request-event.ts';
import {
  ApiError,
  cancelled,
  incomplete,
  type Reason,
  toApiError,
  unavailable,
} from '../../domain/reason.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import type { AnyRequest, AnyResponse } from '../listen/any-http.ts';
import { inPieces } from '../listen/counted-response.ts';
import type { OpenCall } from '../listen/open-calls.ts';
import { bodyBytesMax } from '../listen/request-head.ts';
import { requestMs } from './connection.ts';
import { shortenDeadline } from './deadline.ts';
import { toConnectError } from './errors.ts';
import { checkGetQuery } from './get-query.ts';
import { connectionKey, createHealth, type HealthDependencies } from './health.ts';
import { answerUnknownMethod, errorOfEmptyResponse, sendError } from './plain-responses.ts';
import { strictProtoJson } from './proto-json.ts';
import { createReflection } from './reflection.ts';

/** What typed calls work with. */
export interface TypedCallDependencies {
  readonly calls: Pick<Calls, 'identified' | 'streamed'>;
  readonly services: readonly DescService[];
  readonly bearerCheck: BearerCheck;
  readonly readiness: HealthDependencies['readiness'];
  /** Aborted when the process takes no more calls: health says so, and streams end. */
  readonly draining: AbortSignal;
  /** How long the message of a call may take to arrive, in milliseconds; tests wait less. */
  readonly arrivalMs?: number;
}

/** Answers a request of Connect, gRPC or gRPC-Web. */
export type TypedCalls = (
  request: AnyRequest,
  response: AnyResponse,
  event: RequestEvent,
  open: OpenCall,
) => void;

/**
 * Concurrent calls of a caller that only read: enough to fill batches at the store. A call that waits takes about 6 KB of
 * memory, a running one 25; it keeps its slot until its work is over, even if its client has gone before.
 */
const readsPerCaller = 64;

/** Why the Connect library itself refuses a call before its operation begins, by the code that it gives. */
const libraryReasons: ReadonlyMap<Code, Reason> = new Map([
  [Code.ResourceExhausted, 'BODY_TOO_LARGE'],
  [Code.InvalidArgument, 'VALIDATION_FAILED'],
  // So it calls a binary message that cannot be decoded, one that ends early, and none or two in place of one.
  [Code.Internal, 'VALIDATION_FAILED'],
  [Code.DataLoss, 'VALIDATION_FAILED'],
  [Code.Unimplemented, 'VALIDATION_FAILED'],
]);

const eventKey = createContextKey<RequestEvent>({ requestId: '' });
const requestKey = createContextKey<AnyRequest | undefined>(undefined);
const inputKey = createContextKey<DescMessage | undefined>(undefined);
const begunKey = createContextKey(false);
const endTurnKey = createContextKey(() => {});

/**
 * Takes calls to their operation once their bearer token is known, before their message is read and before the library
 * spends anything on them. Health is answered to anybody; reflection, like the operations, to those who have a token.
 */
export function createTypedCalls(dependencies: TypedCallDependencies): TypedCalls {
  const { calls, services, bearerCheck, readiness, draining, arrivalMs = requestMs } = dependencies;

  const reads = createKeyedLimit<string>({ perKey: readsPerCaller });

  /** Returns the caller. Throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID, KEY_SUSPENDED. */
  function identify(request: AnyRequest, event: RequestEvent): string {
    const { caller, tokenId } = bearerCheck(request.headers.authorization ?? null);
    setCaller(event, caller);
    event.tokenId = tokenId;
    return caller;
  }

  async function carryOut(
    method: DescMethodUnary,
    message: Message,
    { values, signal, requestHeader, responseHeader }: HandlerContext,
  ): Promise<Message> {
    // Again, for its token may have ended while the message arrived.
    const principal = bearerCheck(requestHeader.get('Authorization'));
    values.set(begunKey, true);
    const key = requestHeader.get('Idempotency-Key');
    const idempotencyKeys = key === null ? [] : [key];
    const read = () => ({ message, violations: [] });
    const event = values.get(eventKey);
    const endTurn = values.get(endTurnKey);
    const called = calls.identified(principal, { method, idempotencyKeys, read, onPause: endTurn }, event);
    // Not with the answer: at its deadline a call is answered while it is still under way.
    void called.then(endTurn);
    const { response, isReplay } = await Promise.race([called, deadlineOver(signal)]);
    // Its answer would be made for nobody.
    if (signal.aborted) throw cancelled();
    if (isReplay) responseHeader.set('Idempotent-Replayed', 'true');
    if (response instanceof ApiError) throw response;
    return response;
  }

  async function* carryOutStream(
    method: DescMethodServerStreaming,
    message: Message,
    { values, signal: gone, requestHeader }: HandlerContext,
  ): AsyncGenerator<Message> {
    const authorization = requestHeader.get('Authorization');
    const principal = bearerCheck(authorization);
    values.set(begunKey, true);
    const signal = AbortSignal.any([gone, draining]);
    const call = { method, message, signal };
    for await (const answer of calls.streamed(principal, call)) {
      // Again, for a token may end before the stream that was opened with it.
      bearerCheck(authorization);
      yield answer;
    }
    if (!draining.aborted) return;
    values.get(eventKey).isStopping = true;
    throw unavailable('The server is stopping. Open the stream again with the last cursor.');
  }

  const router = createConnectRouter({
    interceptors: [refuseInOurWords],
    readMaxBytes: bodyBytesMax,
    // Not Brotli: a few bytes of it demand a window of 16 MB, which is taken before anything is unpacked.
    acceptCompression: [compressionGzip],
  });
  function serve<M extends DescMethod>(method: M, carriedOut: MethodImpl<M>): void {
    router.rpc(method, carriedOut, {
      requestGate: async (context) => {
        context.values.set(inputKey, method.input);
        explainLibrary(context);
        if (method.methodKind !== 'bidi_streaming') limitArrival(context, arrivalMs);
      },
      jsonOptions: strictProtoJson(method.input),
    });
  }
  for (const method of services.flatMap((service) => service.methods)) {
    if (isUnary(method)) serve(method, (request, context) => carryOut(method, request, context));
    if (isStreaming(method)) serve(method, (request, context) => carryOutStream(method, request, context));
  }
  const names = services.map(({ typeName }) => typeName);
  const health = createHealth({ services: names, readiness, draining });
  serve(Health.method.check, health.check);
  serve(Health.method.list, health.list);
  serve(Health.method.watch, health.watch);
  const listed = [...services, Health, ServerReflection, ServerReflectionAlpha];
  const reflectionInfo = createReflection({
    services: listed,
    files: [file_google_rpc_error_details],
    draining,
  });
  serve(ServerReflection.method.serverReflectionInfo, reflectionInfo);
  serve(ServerReflectionAlpha.method.serverReflectionInfo, reflectionInfo);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));

  async function answer(...[request, response, event, open]: Parameters<TypedCalls>): Promise<void> {
    const target = request.url ?? '';
    const handler = handlers.get(target.replace(/\?.*$/s, ''));
    if (handler === undefined) return answerUnknownMethod(request, response, event);
    event.operation = operationName(handler.method);
    if (handler.method.methodKind !== 'unary') endWithClient(request, response);
    const values = createContextValues();
    try {
      event.isProbe = handler.service.typeName === Health.typeName;
      if (!event.isProbe) {
        const caller = identify(request, event);
        if (isUnary(handler.method) && !isWriting(handler.method)) {
          values.set(endTurnKey, await reads.take(caller, (leave) => response.once('close', leave)));
        }
      }
      if (request.method === 'GET' && handler.allowedMethods.includes('GET')) checkGetQuery(target);
      const answered = await handler(universalRequest(request, response, event, values));
      const { status, body } = answered;
      if (body !== undefined) {
        return await universalResponseToNodeResponse({ ...answered, body: inPieces(body, open) }, response);
      }
      sendError(request, response, event, errorOfEmptyResponse(status, handler), { status });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      sendError(request, response, event, error);
    } finally {
      if (!values.get(begunKey)) values.get(endTurnKey)();
    }
  }

  return (request, response, event, open) => {
    answer(request, response, event, open).catch((error) => {
      // So the library calls what a client breaks off; what was still to be written then fails in ways of its own.
      const isBrokenOff = ConnectError.from(error).code === Code.Aborted || isGone(response);
      if (!isBrokenOff) event.apiError ??= toApiError(error);
      destroy(response);
    });
  };
}

/** Whether nothing can be written to a client any more. */
function isGone(response: AnyResponse): boolean {
  return 'stream' in response ? response.stream.destroyed : (response.socket?.destroyed ?? true);
}

/** Whether a client has given its call up. */
function isReset(request: AnyRequest): boolean {
  if ('stream' in request) return request.stream.aborted;
  // A request that was not read to its end has no socket any more, whatever Node's types say.
  const socket: AnyRequest['socket'] | null = request.socket;
  return socket?.destroyed === true;
}

function destroy(response: AnyResponse): void {
  ('stream' in response ? response.stream : response).destroy();
}

/**
 * Ends a stream of answers over HTTP/1.1 as soon as its client closes its half: nothing else tells that it is gone until
 * there is a message to write, which may be never. Over HTTP/2 it resets its stream.
 */
function endWithClient({ socket }: AnyRequest, response: AnyResponse): void {
  if ('stream' in response) return;
  const end = () => response.destroy();
  socket.once('end', end);
  response.once('close', () => socket.off('end', end));
}

/** A request as the library takes it. Throws BAD_REQUEST_TARGET. */
function universalRequest(
  request: AnyRequest,
  response: AnyResponse,
  event: RequestEvent,
  values: ContextValues,
) {
  const connection = 'stream' in request ? request.stream.session : request.socket;
  values
    .set(eventKey, event)
    .set(requestKey, request)
    .set(connectionKey, connection ?? request);
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, values);
    shortenDeadline(universal.header);
    return universal;
  } catch {
    throw new ApiError('BAD_REQUEST_TARGET', 'The request has no valid Host.');
  }
}

/**
 * Refuses a call with TIMEOUT if its message is not there at its deadline, or `arrivalMs` after its head: the library waits
 * for the message, whatever the deadline.
 */
function limitArrival({ signal, values }: HandlerContext, arrivalMs: number): void {
  if (isDeadlineOver(signal)) throw refusing(values, deadlineError());
  const request = values.get(requestKey);
  // Whoever reads the message meets this error, and answers it.
  const refuse = (apiError: ApiError) =>
    request?.complete || request?.emit('error', refusing(values, apiError));
  const look = () => {
    clearTimeout(timeout);
    if (isDeadlineOver(signal)) refuse(deadlineError());
  };
  const timeout = setTimeout(() => {
    // Over HTTP/1.1 the error aborts the call at once.
    signal.removeEventListener('abort', look);
    refuse(incomplete(arrivalMs));
  }, arrivalMs);
  signal.addEventListener('abort', look, { once: true });
}

/** Rejects with TIMEOUT at the deadline of a call. */
function deadlineOver(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>();
  const look = () => {
    if (isDeadlineOver(signal)) reject(deadlineError());
  };
  look();
  signal.addEventListener('abort', look, { once: true });
  return promise;
}

function isDeadlineOver({ reason }: AbortSignal): boolean {
  return reason instanceof ConnectError && reason.code === Code.DeadlineExceeded;
}

function deadlineError(): ApiError {
  return new ApiError('TIMEOUT', 'The deadline of the call is over; it may still be carried out.');
}

function refusing(values: ContextValues, error: unknown): ConnectError {
  const event = values.get(eventKey);
  event.apiError = toApiError(error);
  return toConnectError(event.apiError, event.requestId, undefined, values.get(inputKey));
}

/** Gives what methods throw its reason, and INTERNAL to what nobody foresaw. */
const refuseInOurWords: Interceptor = (next) => async (request) => {
  const { contextValues } = request;
  try {
    const response = await next(request);
    if (!response.stream) return response;
    return { ...response, message: refusingStream(request, response.message) };
  } catch (error) {
    throw refusingOwn(contextValues, error);
  }
};

/** The messages of a stream. At its deadline a method ends its stream like any other end; it is refused here. */
async function* refusingStream<T>(
  { contextValues, signal }: Pick<StreamRequest, 'contextValues' | 'signal'>,
  messages: AsyncIterable<T>,
): AsyncGenerator<T> {
  try {
    for await (const message of messages) {
      try {
        yield message;
      } catch {
        // Nothing of the method failed: its message could not be written, for the client is gone.
        return;
      }
    }
    if (isDeadlineOver(signal)) throw deadlineError();
  } catch (error) {
    throw refusingOwn(contextValues, error);
  }
}

/** An error of the library comes from the messages that it reads for a method; it is explained when it ends the call. */
function refusingOwn(values: ContextValues, error: unknown): ConnectError {
  return error instanceof ConnectError ? error : refusing(values, error);
}

/** Gives an error of the library its reason. The library aborts the call with it, and only then writes it. */
function explainLibrary({ signal, values, method, responseHeader }: HandlerContext): void {
  signal.addEventListener('abort', () => {
    const error: unknown = signal.reason;
    if (!(error instanceof ConnectError) || error.details.length > 0) return;
    // The library gives an error to a client that is gone as well, of whatever code its stream was reset with.
    const request = values.get(requestKey);
    if (request !== undefined && isReset(request)) return;
    const apiError = errorOf(error, method);
    if (apiError === undefined) return;
    // Once the operation has begun, it is its answer that fails.
    const cause = values.get(begunKey) ? new Error(error.message) : apiError;
    // The compressions that it knows; headers of a protocol it takes from here, and not from an error.
    for (const [name, value] of error.metadata) responseHeader.set(name, value);
    Object.assign(error, refusing(values, cause));
  });
}

/** The headers in which an error names the compressions that are known, one for each protocol. */
const compressionHeaders = ['Accept-Encoding', 'Connect-Accept-Encoding', 'grpc-accept-encoding'];

function errorOf(error: ConnectError, { input }: DescMethod): ApiError | undefined {
  if (error.cause instanceof ApiError) return error.cause;
  if (compressionHeaders.some((name) => error.metadata.has(name))) {
    return new ApiError('UNSUPPORTED_MEDIA_TYPE', error.rawMessage);
  }
  const reason = libraryReasons.get(error.code);
  // What follows are words of its parser.
  const isUndecoded = error.rawMessage.startsWith('parse binary: ');
  const undecoded = `The message cannot be decoded: it must be ${input.typeName} in Protobuf, its texts in UTF-8.`;
  return reason && new ApiError(reason, isUndecoded ? undecoded : error.rawMessage);
}
