import type {
  DescMessage,
  DescMethod,
  DescMethodUnary,
  DescService,
  MessageInitShape,
  MessageShape,
} from '@bufbuild/protobuf';
import type { Principal } from '../access/principal.ts';
import type { Violation } from '../domain/violation.ts';

/** One call of an operation, whichever door it came through. */
export interface Call {
  /** UUIDv7, the server's own. */
  readonly requestId: string;
  readonly principal: Principal;
  /** The key that the caller claimed for it, so that a repetition goes on with what it began. */
  readonly idempotencyKey?: string | undefined;
  /**
   * Called by an operation that has made durable by itself what it is about to answer, a refusal too: it goes out even
   * if what the door books along with it is lost.
   */
  readonly stands?: () => void;
}

/** An RPC method: the use case itself. */
export interface Operation<I extends DescMessage = DescMessage, O extends DescMessage = DescMessage> {
  /** Who may call it beyond any identified caller; others are refused with PERMISSION_DENIED. */
  readonly allowed?: 'operator';
  /** The fields that break their rules; `run` is called only if there are none. */
  check(request: MessageShape<I>, call: Call): readonly Violation[];
  /** Carries the call out. Throws Refusal. */
  run(request: MessageShape<I>, call: Call): Promise<MessageInitShape<O>>;
}

/** An operation for each RPC of a service. */
export type Operations<S extends DescService> = {
  readonly [Name in keyof S['method']]: S['method'][Name] extends DescMethodUnary<infer I, infer O>
    ? Operation<I, O>
    : never;
};

/** A service of the schema with its operations. */
export interface Implementation {
  readonly service: DescService;
  readonly operations: ReadonlyMap<DescMethodUnary, Operation>;
}

/** Pairs a service with its operations; throws if the schema has a method that cannot be one. */
export function implement<S extends DescService>(service: S, operations: Operations<S>): Implementation {
  const entries = service.methods.map((method): [DescMethodUnary, Operation] => {
    const operation = (operations as Record<string, Operation | undefined>)[method.localName];
    if (!isUnary(method) || operation === undefined) throw new Error(`${method} has no operation.`);
    return [method, operation];
  });
  return { service, operations: new Map(entries) };
}

function isUnary(method: DescMethod): method is DescMethodUnary {
  return method.methodKind === 'unary';
}
