import type {
  DescMessage,
  DescMethod,
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
   * Throws Refusal.
   */
  readonly execute: Execute;
}

/** What a message comes to: the input of its operation, or what is wrong with it. */
export type Parsed<Input> =
  | { readonly input: Input; readonly violations?: never }
  | { readonly violations: readonly Violation[]; readonly input?: never };

/** The input that `make` gives, unless something is wrong. */
export function parsed<Input>(violations: readonly Violation[], make: () => Input): Parsed<Input> {
  return violations.length > 0 ? { violations } : { input: make() };
}

/** An RPC method: the use case itself. */
export interface Operation<I extends DescMessage, O extends DescMessage, Input> {
  /** Turns a message into valid input. */
  parse(message: MessageShape<I>, principal: Principal): Parsed<Input>;
  /** Carries the call out. Throws Refusal. */
  run(input: Input, call: Call): Promise<MessageInitShape<O>>;
}

/** An operation whose input is known to itself alone. */
export interface AnyOperation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  /** Parses a message; `run` carries out what it came to. */
  parse(
    message: MessageShape<I>,
    principal: Principal,
  ):
    | { readonly violations: readonly Violation[]; readonly run?: never }
    | { readonly run: (call: Call) => Promise<MessageInitShape<O>>; readonly violations?: never };
}

/** Makes an operation. */
export function operation<I extends DescMessage, O extends DescMessage, Input>({
  parse,
  run,
}: Operation<I, O, Input>): AnyOperation<I, O> {
  return {
    parse: (message, principal) => {
      const { input, violations } = parse(message, principal);
      return violations === undefined ? { run: (call) => run(input as Input, call) } : { violations };
    },
  };
}

/** Name of the operation of a method, as in the path of its RPC: `artseal.v1.FilingService/CreateFiling`. */
export function operationName({ parent, name }: DescMethod): string {
  return `${parent.typeName}/${name}`;
}

/** An operation for each RPC of a service. */
export type Operations<S extends DescService> = {
  readonly [Name in keyof S['method']]: S['method'][Name] extends DescMethodUnary<infer I, infer O>
    ? AnyOperation<I, O>
    : never;
};

/** A service of the schema with its operations. */
export interface Implementation {
  readonly service: DescService;
  /** What calls that write need, and how the need of those that read follows from it: `scopeNeeded`. */
  readonly scope: Scope;
  readonly operations: ReadonlyMap<DescMethodUnary, AnyOperation>;
}

/** Pairs a service with its operations; throws if the schema has a method that cannot be one. */
export function implement<S extends DescService>(
  service: S,
  scope: Scope,
  operations: Operations<S>,
): Implementation {
  const entries = service.methods.map((method): [DescMethodUnary, AnyOperation] => {
    const found = (operations as Record<string, AnyOperation | undefined>)[method.localName];
    if (!isUnary(method) || found === undefined) throw new Error(`${method} has no operation.`);
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
