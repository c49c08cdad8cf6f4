import type {
  DescMessage,
  DescMethod,
  DescMethodServerStreaming,
  DescMethodUnary,
  DescService,
  Message,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import { MethodOptions_IdempotencyLevel } from '@bufbuild/protobuf/wkt';
import type { Scope } from '../domain/token.ts';
import type { Violation } from '../domain/violation.ts';
import type { Execute } from '../store/store.ts';
import type { Principal } from './principal.ts';

/** A call of an operation over either API. */
export interface Call {
  readonly principal: Principal;
  /**
   * Runs a command; resolves when it is durable. The first command is stored together with the admission of the call. If the
   * Idempotency-Key was used for the same request before, it returns the stored result and does nothing. Throws ApiError.
   */
  readonly execute: Execute;
  /**
   * Stores the admission of the call without a command. Then `execute` stores no results under the Idempotency-Key: a repeated call
   * runs again. For calls of many commands, of which each continues what an earlier call began. Throws ApiError.
   */
  readonly admit: () => Promise<void>;
  /** Runs a further command. Its result replaces the one stored under the Idempotency-Key. Throws ApiError. */
  readonly executeNext: Execute;
  /** Waits for another party. Meanwhile the call does not count as running. Rejects as `wait` does. */
  readonly pause: <T>(wait: () => Promise<T>) => Promise<T>;
}

/** A call whose response is a stream. */
export interface StreamCall {
  readonly principal: Principal;
  /** Runs a command; resolves when it is durable. Throws ApiError. */
  readonly execute: Execute;
  /** Aborted when the client is gone or the server drains. The stream must then end, whatever it waits for. */
  readonly signal: AbortSignal;
}

/** The first step of an operation. */
interface Checked<I extends DescMessage> {
  /** Returns the rules that a message breaks; none by default. */
  check?(message: MessageShape<I>, principal: Principal): readonly Violation[];
}

/** An operation that returns one message. `run` takes a checked message. It throws ApiError, or rejects with it. */
export interface UnaryOperation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Checked<I> {
  run(message: MessageShape<I>, call: Call): Promise<MessageInitShape<O>>;
}

/** An operation that returns a stream of messages. */
export interface StreamingOperation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage>
  extends Checked<I> {
  run(message: MessageShape<I>, call: StreamCall): AsyncIterable<MessageInitShape<O>>;
}

/** The message of a call and its violations. A field with a violation keeps its default. */
export interface Reading {
  readonly message: Message;
  readonly violations: readonly Violation[];
}

/** The name of a method as in its RPC path: `artseal.v1.FilingService/CreateFiling`. */
export function operationName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** An operation for each RPC of a service. */
export type Operations<S extends DescService> = {
  readonly [Name in keyof S['method']]: S['method'][Name] extends DescMethodUnary<infer I, infer O>
    ? UnaryOperation<I, O>
    : S['method'][Name] extends DescMethodServerStreaming<infer I, infer O>
      ? StreamingOperation<I, O>
      : never;
};

/** A service of the schema with its operations. */
export interface Implementation {
  readonly service: DescService;
  /** The scope that writing calls need; `scopeNeeded` derives that of reading calls. */
  readonly scope: Scope;
  readonly operations: ReadonlyMap<DescMethod, UnaryOperation | StreamingOperation>;
}

/** Pairs a service with its operations. Throws if a method that streams may not be repeated. */
export function implement<S extends DescService>(
  service: S,
  scope: Scope,
  operations: Operations<S>,
): Implementation {
  const found = operations as Readonly<Record<string, UnaryOperation | StreamingOperation>>;
  const entries = service.methods.flatMap((method) => {
    if (isStreaming(method) && !mayRepeat(method))
      throw new Error(`${method} streams, so it must have NO_SIDE_EFFECTS or IDEMPOTENT.`);
    const operation = found[method.localName];
    return operation === undefined ? [] : [[method, operation] as const];
  });
  return { service, scope, operations: new Map(entries) };
}

/** Whether a method may change something. If it returns one message, its calls take an Idempotency-Key. */
export function isWriting({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.NO_SIDE_EFFECTS;
}

/**
 * Whether a repeated call does no harm. A stream has no admission, so nothing recognises the repetition. Backups are IDEMPOTENT:
 * they write files and not the store. CreateBackup needs a file that does not exist, so a repeated call fails; a repeated
 * RotateBackups takes one more backup at worst.
 */
function mayRepeat({ idempotency }: DescMethod): boolean {
  return idempotency !== MethodOptions_IdempotencyLevel.IDEMPOTENCY_UNKNOWN;
}

/** Whether a method takes and returns one message. */
export function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary';
}

/** Whether a method takes one message and returns a stream. */
export function isStreaming(method: DescMethod): method is DescMethodServerStreaming {
  return method.methodKind === 'server_streaming';
}
