import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Http2ServerRequest, Http2ServerResponse } from 'node:http2';
import type { DescMethodUnary, Message } from '@bufbuild/protobuf';
import {
  Code,
  ConnectError,
  type ConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
  type ServiceImpl,
} from '@connectrpc/connect';
import { errorToJsonBytes } from '@connectrpc/connect/protocol-connect';
import { setTrailerStatus } from '@connectrpc/connect/protocol-grpc';
import { type ConnectNodeAdapterOptions, connectNodeAdapter } from '@connectrpc/connect-node';
import type { BearerCheck } from '../access/bearer.ts';
import type { Principal } from '../access/principal.ts';
import { asRefusal, type Reason, Refusal } from '../domain/reason.ts';
import type { Trace } from '../observe/trace.ts';
import type { Dispatcher } from '../rpc/dispatcher.ts';
import { toConnectError } from '../rpc/errors.ts';

/** What typed calls work with. */
export interface TypedCallDependencies {
  readonly dispatcher: Dispatcher;
  readonly bearerCheck: BearerCheck;
  /** The store's barrier: nothing is answered before it. */
  readonly durable: () => Promise<void>;
}

/** A request of either HTTP version. */
export type AnyRequest = IncomingMessage | Http2ServerRequest;
/** A response of either HTTP version. */
export type AnyResponse = ServerResponse | Http2ServerResponse;

/** Answers a request of Connect, gRPC or gRPC-Web. */
export type TypedCalls = (request: AnyRequest, response: AnyResponse, trace: Trace) => void;

/** The largest message, in bytes: as over REST. */
const messageBytesMax = 65_536;
/** The longest time that a client may allow a call, in milliseconds. */
const timeoutMsMax = 60_000;

/** Why the Connect library itself refuses a call before its operation begins, by the code that it gives. */
const libraryReasons: ReadonlyMap<Code, Reason> = new Map([
  [Code.ResourceExhausted, 'BODY_TOO_LARGE'],
  [Code.InvalidArgument, 'VALIDATION_FAILED'],
  // So it calls a binary message that cannot be decoded.
  [Code.Internal, 'VALIDATION_FAILED'],
]);

const traceKey = createContextKey<Trace>({ requestId: '' });
const principalKey = createContextKey<Principal | undefined>(undefined);
const begunKey = createContextKey(false);

/** Lets calls with a bearer token in, before their message is read, and takes them to their operation. */
export function createTypedCalls({ dispatcher, bearerCheck, durable }: TypedCallDependencies): TypedCalls {
  const traces = new WeakMap<object, Trace>();

  function refusing(context: HandlerContext, error: unknown) {
    const trace = context.values.get(traceKey);
    trace.refusal = asRefusal(error);
    return toConnectError(trace.refusal, trace.requestId);
  }

  async function identify(context: HandlerContext): Promise<void> {
    const trace = context.values.get(traceKey);
    trace.operation = `${context.service.typeName}/${context.method.name}`;
    try {
      const service = await bearerCheck(context.requestHeader.get('Authorization'));
      trace.caller = service.caller;
      context.values.set(principalKey, service);
      context.signal.addEventListener('abort', () => explain(context));
    } catch (error) {
      throw refusing(context, error);
    }
  }

  /** Gives an error of the library its reason. The library aborts the call with it, and only then writes it. */
  function explain(context: HandlerContext): void {
    const error: unknown = context.signal.reason;
    const reason = error instanceof ConnectError ? libraryReasons.get(error.code) : undefined;
    if (!(error instanceof ConnectError) || reason === undefined || error.details.length > 0) return;
    // Once the operation has begun, it is its answer that fails.
    const hasBegun = context.values.get(begunKey);
    const refusal = hasBegun ? new Error(error.message) : new Refusal(reason, error.rawMessage);
    Object.assign(error, refusing(context, refusal));
  }

  async function carryOut(
    method: DescMethodUnary,
    request: Message,
    context: HandlerContext,
  ): Promise<Message> {
    const principal = context.values.get(principalKey);
    const { requestId } = context.values.get(traceKey);
    context.values.set(begunKey, true);
    let isDurable = false;
    const stands = () => {
      isDurable = true;
    };
    try {
      if (principal === undefined) throw new Error('The request gate let an unidentified call through.');
      return await dispatcher.invoke(method, request, { requestId, principal, stands });
    } catch (error) {
      throw refusing(context, error);
    } finally {
      // A refusal, too, may tell of something that is not on disk yet.
      if (!isDurable) await durable().catch((error) => Promise.reject(refusing(context, error)));
    }
  }

  function routes(router: ConnectRouter): void {
    for (const service of dispatcher.services) {
      const methods = service.methods.map((method) => [
        method.localName,
        (request: Message, context: HandlerContext) => carryOut(method as DescMethodUnary, request, context),
      ]);
      router.service(service, Object.fromEntries(methods) as ServiceImpl<typeof service>);
    }
  }

  const refuseUnknown: NonNullable<ConnectNodeAdapterOptions['fallback']> = (request, response) => {
    const trace = traces.get(request) ?? { requestId: '' };
    trace.refusal = new Refusal('NOT_FOUND', 'There is no such service or method.');
    const error = toConnectError(trace.refusal, trace.requestId);
    const type = request.headers['content-type'] ?? '';
    if (type.startsWith('application/grpc')) {
      const status = setTrailerStatus(new Headers({ 'Content-Type': type }), error);
      response.writeHead(200, Object.fromEntries(status));
      response.end();
    } else {
      response.writeHead(404, { 'Content-Type': 'application/json' });
      response.end(errorToJsonBytes(error, undefined));
    }
  };

  const adapter = connectNodeAdapter({
    routes,
    requestGate: identify,
    contextValues: (request) => createContextValues().set(traceKey, traces.get(request) ?? { requestId: '' }),
    fallback: refuseUnknown,
    readMaxBytes: messageBytesMax,
    maxTimeoutMs: timeoutMsMax,
    // A misspelt field must not be dropped in silence.
    jsonOptions: { ignoreUnknownFields: false },
  });

  return (request, response, trace) => {
    traces.set(request, trace);
    adapter(request, response);
  };
}
