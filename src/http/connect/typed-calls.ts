import {
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  getOption,
  type Message,
} from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  type ContextValues,
  createConnectRouter,
  createContextValues,
  createRouterTransport,
  type HandlerContext,
  type Interceptor,
  type MethodImpl,
  type Transport,
} from '@connectrpc/connect';
import type { UniversalServerRequest } from '@connectrpc/connect/protocol';
import { compressionGzip, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import { message_bytes_max } from '../../../gen/artseal/v1/options_pb.ts';
import { file_google_rpc_error_details } from '../../../gen/google/rpc/error_details_pb.ts';
import { ServerReflection } from '../../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { Health } from '../../../gen/health/v1/health_pb.ts';
import { type RequestEvent, setCaller } from '../../api/call-observer.ts';
import { isStreaming, isUnary, isWriting, operationName, type TypedPrincipal } from '../../api/operation.ts';
import type { Calls } from '../../api/pipeline.ts';
import { ApiError, cancelled, toApiError, unavailable } from '../../domain/reason.ts';
import type { Readiness } from '../../health/readiness.ts';
import { createKeyedLimit } from '../../lib/concurrency.ts';
import { endWith, inPieces } from '../listen/http1-server.ts';
import { type AnyRequest, type AnyResponse, isBrokenOff, type OpenCall } from '../listen/open-calls.ts';
import { requestMs } from './connections.ts';
import {
  callKeys,
  checkNotAborted,
  deadlineOver,
  errorOfEmptyResponse,
  explainErrors,
  explainLibraryError,
  limitArrival,
  sendError,
} from './errors.ts';
import { checkGetQuery, shortenDeadline, strictProtoJson } from './requests.ts';
import { createHealth, createReflection } from './standard-services.ts';

/**
 * Identifies the caller by the headers of a request, of which `header` returns the value. Throws AUTH_HEADER_MISSING,
 * AUTH_HEADER_INVALID, KEY_SUSPENDED.
 */
export type Identify = (header: (name: string) => string | null) => TypedPrincipal;

/** The dependencies of typed calls. */
export interface TypedCallDependencies {
  readonly calls: Pick<Calls, 'checkScope' | 'identified' | 'streamed'>;
  readonly services: readonly DescService[];
  readonly identify: Identify;
  readonly readiness: Pick<Readiness, 'check' | 'onChange'>;
  /** Aborted when the server begins to stop: health shows it, and streams end. */
  readonly draining: AbortSignal;
  /** How long the message of a call may take to arrive, in milliseconds. Tests set less. */
  readonly arrivalMs?: number;
}

/** Answers a request of Connect, gRPC or gRPC-Web. */
export type TypedCalls = (
  request: AnyRequest,
  response: AnyResponse,
  event: RequestEvent,
  open: OpenCall,
) => void;

/** The largest message in bytes, as over REST, of a method without an option of its own. */
const messageBytesMax = 65_536;

/**
 * Concurrent calls of a caller that only read: enough to fill batches at the store. A call that waits takes about 6 KB of
 * memory, a running one 25. It keeps its slot until its work is done, even if its client has gone.
 */
const readsPerCaller = 64;

/**
 * Takes calls to their operation. Identifies the caller and checks its scope first, before the message is read and before the
 * library spends anything on the call. Health needs no token; reflection and the operations do.
 */
export function createTypedCalls(dependencies: TypedCallDependencies): TypedCalls {
  const reads = createKeyedLimit<string>({ perKey: readsPerCaller });
  const router = createConnectRouter(routerOptions);
  serveMethods(router, dependencies);
  const handlers = new Map(router.handlers.map((handler) => [handler.requestPath, handler]));
  // Read once: reading an option takes as long as a call.
  const options = router.handlers.map(
    ({ method }) => [method, getOption(method, message_bytes_max)] as const,
  );
  const largeMessages = new Map<DescMethod, number>(options.filter(([, bytes]) => bytes > 0));

  /** Returns the caller. Throws AUTH_HEADER_MISSING, AUTH_HEADER_INVALID, KEY_SUSPENDED, PERMISSION_DENIED. */
  function identify(
    { headers }: AnyRequest,
    method: DescMethod,
    open: OpenCall,
    event: RequestEvent,
  ): string {
    const principal = dependencies.identify((name) => headers[name]?.toString() ?? null);
    setCaller(event, principal.caller);
    if (principal.kind === 'service') event.tokenId = principal.tokenId;
    // Here, because a message may be large.
    dependencies.calls.checkScope(principal, method);
    const bytes = largeMessages.get(method);
    if (bytes !== undefined) open.hold(bytes);
    return principal.caller;
  }

  async function answer(...[request, response, event, open]: Parameters<TypedCalls>): Promise<void> {
    const target = request.url ?? '';
    const handler = handlers.get(target.replace(/\?.*$/s, ''));
    if (handler === undefined) {
      const apiError = new ApiError('NOT_FOUND', 'There is no such service or method.');
      // UNIMPLEMENTED in gRPC; 404 in Connect, whose clients read it as UNIMPLEMENTED.
      return sendError(request, response, event, apiError, { code: Code.Unimplemented });
    }
    event.operation = operationName(handler.method);
    if (handler.method.methodKind !== 'unary') endWithClient(request, response);
    const values = createContextValues().set(callKeys.event, event).set(callKeys.request, request);
    try {
      event.isProbe = handler.service.typeName === Health.typeName;
      if (!event.isProbe) {
        const caller = identify(request, handler.method, open, event);
        if (isUnary(handler.method) && !isWriting(handler.method)) {
          const free = await reads.take(caller, (leave) => response.once('close', leave));
          values.set(callKeys.freeSlot, free);
          // A call that has begun keeps its slot until its work is done.
          response.once('close', () => values.get(callKeys.hasBegun) || free());
        }
      }
      if (request.method === 'GET' && handler.allowedMethods.includes('GET')) checkGetQuery(target);
      const answered = await handler(universalRequest(request, response, values));
      const { status, header, body } = answered;
      if (body === undefined) {
        sendError(request, response, event, errorOfEmptyResponse(status, handler), { status });
      } else if (header?.has('Content-Length')) {
        // The body of a unary response of Connect is one message.
        response.statusCode = status;
        for (const [name, value] of header) response.setHeader(name, value);
        for await (const message of body) endWith(response, message);
      } else {
        await universalResponseToNodeResponse({ ...answered, body: inPieces(body, open) }, response);
      }
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      sendError(request, response, event, error);
    }
  }

  return (request, response, event, open) => {
    answer(request, response, event, open).catch((error) => {
      // Aborted is the library's code for a call that its client broke off. Writes to it then fail in other ways, too.
      const isClientGone = ConnectError.from(error).code === Code.Aborted || isGone(response);
      if (!isClientGone) event.apiError ??= toApiError(error);
      destroy(response);
    });
  };
}

/** A transport for clients in the same process. */
export function createInMemoryTransport(
  dependencies: TypedCallDependencies,
  interceptors: Interceptor[],
): Transport {
  return createRouterTransport((router) => serveMethods(router, dependencies), {
    router: routerOptions,
    transport: { interceptors },
  });
}

const routerOptions = {
  interceptors: [explainErrors],
  readMaxBytes: messageBytesMax,
  // Not Brotli: a few bytes of it demand a window of 16 MB, which is allocated before anything is decompressed.
  acceptCompression: [compressionGzip],
};

/** Serves the methods of the services, of health and of reflection, in all protocols. */
function serveMethods(router: ConnectRouter, dependencies: TypedCallDependencies): void {
  const { services, readiness, draining, arrivalMs = requestMs } = dependencies;
  const { runUnary, runStream } = createMethods(dependencies);
  function serve<M extends DescMethod>(method: M, implementation: MethodImpl<M>): void {
    router.rpc(method, implementation, {
      requestGate: async (context) => {
        context.values.set(callKeys.input, method.input);
        explainLibraryError(context);
        // Over HTTP/1.1, most messages arrive together with their heads. Node reads such a message before this continues.
        await undefined;
        if (method.methodKind !== 'bidi_streaming') limitArrival(context, arrivalMs);
      },
      jsonOptions: strictProtoJson(method.input),
      readMaxBytes: getOption(method, message_bytes_max) || messageBytesMax,
    });
  }
  for (const method of services.flatMap((service) => service.methods)) {
    if (isUnary(method)) serve(method, (request, context) => runUnary(method, request, context));
    if (isStreaming(method)) serve(method, (request, context) => runStream(method, request, context));
  }
  const names = services.map(({ typeName }) => typeName);
  const health = createHealth(names, readiness, draining);
  serve(Health.method.check, health.check);
  serve(Health.method.list, health.list);
  serve(Health.method.watch, health.watch);
  const reflectionInfo = createReflection(
    [...services, Health, ServerReflection, ServerReflectionAlpha],
    [file_google_rpc_error_details],
    draining,
  );
  serve(ServerReflection.method.serverReflectionInfo, reflectionInfo);
  serve(ServerReflectionAlpha.method.serverReflectionInfo, reflectionInfo);
}

/** Runs the methods of the services through the pipeline. */
function createMethods({ calls, identify, draining }: TypedCallDependencies) {
  async function runUnary(
    method: DescMethodUnary,
    message: Message,
    { values, signal, timeoutMs, requestHeader, responseHeader }: HandlerContext,
  ): Promise<Message> {
    checkNotAborted(signal);
    // Again, because the token may have ended while the message arrived.
    const principal = identify((name) => requestHeader.get(name));
    values.set(callKeys.hasBegun, true);
    const key = requestHeader.get('Idempotency-Key');
    const idempotencyKeys = key === null ? [] : [key];
    const read = () => ({ message, violations: [] });
    const event = values.get(callKeys.event);
    const onPause = values.get(callKeys.freeSlot);
    const called = calls.identified(principal, { method, idempotencyKeys, read, onPause }, event);
    // Not with the response: at its deadline a call gets a response while it still runs.
    void called.then(onPause);
    const hasDeadline = timeoutMs() !== undefined;
    const { response, isReplay } = await (hasDeadline
      ? Promise.race([called, deadlineOver(signal)])
      : called);
    // Nobody would get the response.
    checkNotAborted(signal);
    if (isReplay) responseHeader.set('Idempotent-Replayed', 'true');
    if (response instanceof ApiError) throw response;
    return response;
  }

  async function* runStream(
    method: DescMethodServerStreaming,
    message: Message,
    { values, signal: gone, requestHeader }: HandlerContext,
  ): AsyncGenerator<Message> {
    checkNotAborted(gone);
    const identified = () => identify((name) => requestHeader.get(name));
    const principal = identified();
    values.set(callKeys.hasBegun, true);
    const signal = AbortSignal.any([gone, draining]);
    for await (const response of calls.streamed(principal, { method, message, signal })) {
      // Again, because the token may end before its stream.
      identified();
      yield response;
    }
    if (!draining.aborted) return;
    values.get(callKeys.event).mayBeUnavailable = true;
    throw unavailable('The server is stopping. Open the stream again, with the last cursor if it has one.');
  }

  return { runUnary, runStream };
}

/** Whether nothing can be written to a client any more. */
function isGone(response: AnyResponse): boolean {
  return 'stream' in response ? response.stream.destroyed : (response.socket?.destroyed ?? true);
}

function destroy(response: AnyResponse): void {
  ('stream' in response ? response.stream : response).destroy();
}

/**
 * Ends a stream over HTTP/1.1 as soon as its client closes its half. Otherwise the server would notice that the client is gone
 * only with the next message, which may never come. Over HTTP/2 the client resets its stream.
 */
function endWithClient({ socket }: AnyRequest, response: AnyResponse): void {
  if ('stream' in response) return;
  const end = () => response.destroy();
  socket.once('end', end);
  response.once('close', () => socket.off('end', end));
}

/**
 * A request in the form of the library. Its signal is aborted if the client breaks off the call. Throws BAD_REQUEST_TARGET.
 *
 * The library's own function costs more. It also aborts the signal of a call that has its response, which makes an error with a
 * stack. And it wraps each request in a generator. V8 keeps in the old heap what such a generator needs, and with it the call, until
 * that heap is collected. Here, the request itself is the body.
 */
function universalRequest(
  request: AnyRequest,
  response: AnyResponse,
  contextValues: ContextValues,
): UniversalServerRequest {
  const { httpVersion, method = '', headers } = request;
  const authority = ('authority' in request ? request.authority : headers.host) ?? '';
  const brokenOff = new AbortController();
  response.once('close', () => {
    if (isBrokenOff(response)) brokenOff.abort(cancelled());
  });
  try {
    const { href: url } = new URL(request.url ?? '', `http://${authority}`);
    const header = new Headers();
    for (const [name, value] of Object.entries(headers)) {
      // Not the pseudo-headers of HTTP/2.
      if (!name.startsWith(':')) header.set(name, String(value));
    }
    shortenDeadline(header);
    return { httpVersion, method, url, header, body: request, signal: brokenOff.signal, contextValues };
  } catch {
    throw new ApiError('BAD_REQUEST_TARGET', 'The request has no valid Host.');
  }
}
