import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { Scope } from '../domain/token.ts';
import type { Violation } from '../domain/violation.ts';
import type { Execute } from '../store/store.ts';
import type { Principal } from './principal.ts';

/** One call of an operation, whichever door it came through. */
export interface Call {
  readonly principal: Principal;
  /**
   * Carries a command out; resolves when it is durable. The first one is stored together with the admission of the call.
   * Under an Idempotency-Key that was used for the same request before, it gives what it gave then, and nothing is done.
   * Throws ApiError.
   */
  readonly execute: Execute;
  /**
   * Carries out a further command of a call that takes several. Under an Idempotency-Key, what this command gives is kept in
   * place of what the one before gave. Throws ApiError.
   */
  readonly executeNext: Execute;
  /** Waits for something that others do; meanwhile the call is not one of those under way. Rejects as `wait` does. */
  readonly pause: <T>(wait: () => Promise<T>) => Promise<T>;
}

/** A call that is answered by a stream, for as long as its answers are taken. */
export interface StreamCall {
  readonly principal: Principal;
  /** Carries a command out; resolves when it is durable. Throws ApiError. */
  readonly execute: Execute;
  /** Aborted when nobody takes answers any more: whatever is waited for then, the stream is to end. */
  readonly signal: AbortSignal;
}

/** What a message comes to: the input of its operation, or what is wrong with it. */
export type Parsed<Input> =
  | { readonly input: Input; readonly violations?: never }
  | { readonly violations: readonly Violation[]; readonly input?: never };

/** The input that `make` gives, unless something is wrong. */
export function parsed<Input>(violations: readonly Violation[], make: () => Input): Parsed<Input> {
  return violations.length > 0 ? { violations } : { input: make() };
}

/** What all operations have: how a message becomes valid input. */
interface Parsing<I extends DescMessage, Input> {
  /** FairQueue a message into valid input. */
  parse(message: MessageShape<I>, principal: Principal): Parsed<Input>;
}

/** An RPC method: the use case itself. */
export interface Operation<I extends DescMessage, O extends DescMessage, Input> extends Parsing<I, Input> {
  /** Carries the call out. Throws ApiError. */
  run(input: Input, call: Call): Promise<MessageInitShape<O>>;
}

/** An RPC method that answers with a stream. */
export interface StreamingOperation<I extends DescMessage, O extends DescMessage, Input>
  extends Parsing<I, Input> {
  /** Carries the call out, an answer each time that one is asked for. Iterating throws ApiError. */
  run(input: Input, call: StreamCall): AsyncIterable<MessageInitShape<O>>;
}

/** An operation whose input is known to itself alone: it gives `Answer` for a call. */
interface Hidden<I extends DescMessage, CallOf, Answer> {
  /** Parses a message; `run` carries out what it came to. */
  parse(
    message: MessageShape<I>,
    principal: Principal,
  ):
    | { readonly violations: readonly Violation[]; readonly run?: never }
    | { readonly run: (call: CallOf) => Answer; readonly violations?: never };
}

/** An operation whose input is known to itself alone. */
export interface AnyOperation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Hidden<I, Call, Promise<MessageInitShape<O>>> {
  readonly kind: DescMethodUnary['methodKind'];
}

/** The same that answers with a stream. */
export interface AnyStreamingOperation<
  I extends DescMessage = DescMessage,
  O extends DescMessage = DescMessage,
> extends Hidden<I, StreamCall, AsyncIterable<MessageInitShape<O>>> {
  readonly kind: DescMethodServerStreaming['methodKind'];
}

/** Makes an operation. */
export function operation<I extends DescMessage, O extends DescMessage, Input>({
  parse,
  run,
}: Operation<I, O, Input>): AnyOperation<I, O> {
  return { kind: 'unary', parse: hiding(parse, run) };
}

/** Makes an operation that answers with a stream. */
export function streaming<I extends DescMessage, O extends DescMessage, Input>({
  parse,
  run,
}: StreamingOperation<I, O, Input>): AnyStreamingOperation<I, O> {
  return { kind: 'server_streaming', parse: hiding(parse, run) };
}

function hiding<I extends DescMessage, Input, CallOf, Answer>(
  parse: Parsing<I, Input>['parse'],
  run: (input: Input, call: CallOf) => Answer,
): Hidden<I, CallOf, Answer>['parse'] {
  return (message, principal) => {
    const { input, violations } = parse(message, principal);
    return violations === undefined ? { run: (call) => run(input as Input, call) } : { violations };
  };
}

/** Name of the operation of a method, as in the path of its RPC: `artseal.v1.FilingService/CreateFiling`. */
export function operationName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** An operation for each RPC of a service, of its kind. */
export type Operations<S extends DescService> = {
  readonly [Name in keyof S['method']]: S['method'][Name] extends DescMethodUnary<infer I, infer O>
    ? AnyOperation<I, O>
    : S['method'][Name] extends DescMethodServerStreaming<infer I, infer O>
      ? AnyStreamingOperation<I, O>
      : never;
};

/** A service of the schema with its operations. */
export interface Implementation {
  readonly service: DescService;
  /** What calls that write need, and how the need of those that read follows from it: `scopeNeeded`. */
  readonly scope: Scope;
  /** By methods of their kind. */
  readonly operations: ReadonlyMap<DescMethod, AnyOperation | AnyStreamingOperation>;
}

/** Pairs a service with its operations; throws if the schema has a method that cannot be one. */
export function implement<S extends DescService>(
  service: S,
  scope: Scope,
  operations: Operations<S>,
): Implementation {
  const entries = service.methods.map((method): [DescMethod, AnyOperation | AnyStreamingOperation] => {
    const found = (operations as Record<string, AnyOperation | AnyStreamingOperation | undefined>)[
      method.localName
    ];
    if (found === undefined || found.kind !== method.methodKind)
      throw new Error(`${method} has no operation of its kind.`);
    // A stream is admitted by nothing that could tell its repetition.
    if (isStreaming(method) && isWriting(method))
      throw new Error(`${method} streams, and may change something.`);
    return [method, found];
  });
  return { service, scope, operations: new Map(entries) };
}

/** Whether a method may change something, so that a repetition of a call has to be told from a second one. */
export function isWriting({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/** Whether a method takes one message and answers one. */
export function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary';
}

/** Whether a method takes one message and answers a stream of them. */
export function isStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === 'server_streaming';
}
