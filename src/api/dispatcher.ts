import {
  create,
  type DescMethod,
  type DescMethodServerStreaming,
  type DescMethodUnary,
  type DescService,
  type Message,
} from '@bufbuild/protobuf';
import { ApiError } from '../domain/reason.ts';
import { type Scope, scopeNeeded } from '../domain/token.ts';
import { refuseViolations, type Violation } from '../domain/violation.ts';
import { type Call, type Implementation, isWriting, type StreamCall } from './operation.ts';
import { type Principal, scopesOf } from './principal.ts';

/** The operations, by their methods. */
export interface Dispatcher {
  readonly services: readonly DescService[];
  /**
   * Calls the operation of a method. `violations` are those that were found when the message was read; they are refused
   * together with the operation's own. Throws ApiError, or anything for what is not foreseen.
   */
  invoke(
    method: DescMethodUnary,
    message: Message,
    call: Call,
    violations?: readonly Violation[],
  ): Promise<Message>;
  /** Calls the operation of a method that answers with a stream; iterating throws as `invoke` does, and it is over after that. */
  stream(
    method: DescMethodServerStreaming,
    message: Message,
    call: StreamCall,
  ): AsyncGenerator<Message, void>;
}

export function createDispatcher(implementations: readonly Implementation[]): Dispatcher {
  const entries = implementations.flatMap(({ scope, operations }) =>
    [...operations].map(([method, operation]) => {
      return [method, { needed: scopeNeeded(scope, isWriting(method)), operation }] as const;
    }),
  );
  const served = new Map(entries);

  /** The operation of a method, if the principal may call it. Throws NOT_FOUND, PERMISSION_DENIED. */
  function allowed(method: DescMethod, principal: Principal) {
    const found = served.get(method);
    if (found === undefined) throw new ApiError('NOT_FOUND', `${method.name} is not served.`);
    refuseWithoutScope(found.needed, principal, method);
    return found.operation;
  }

  return {
    services: implementations.map(({ service }) => service),
    invoke: async (method, message, call, violations = []) => {
      const operation = allowed(method, call.principal);
      if (operation.kind !== 'unary') throw new Error(`${method} is a stream.`);
      const run = runnable(operation.parse(message, call.principal), violations, method);
      return create(method.output, await run(call));
    },
    stream: async function* (method, message, call) {
      const operation = allowed(method, call.principal);
      if (operation.kind !== 'server_streaming') throw new Error(`${method} is no stream.`);
      const run = runnable(operation.parse(message, call.principal), [], method);
      for await (const answer of run(call)) yield create(method.output, answer);
    },
  };
}

/** What carries out a message that was parsed. Throws VALIDATION_FAILED. */
function runnable<Run>(
  parsed: { readonly violations?: readonly Violation[]; readonly run?: Run },
  violations: readonly Violation[],
  { name }: DescMethod,
): Run {
  // What was sent tells more than what became of it: of two violations of one field, the first is told.
  refuseViolations([...violations, ...(parsed.violations ?? [])]);
  if (parsed.run === undefined) throw new Error(`${name} gave neither input nor violations.`);
  return parsed.run;
}

/** Throws PERMISSION_DENIED. */
function refuseWithoutScope(needed: Scope, principal: Principal, { name }: DescMethod): void {
  if (scopesOf(principal).includes(needed)) return;
  const isForPlatform = principal.kind === 'platform' || principal.isPlatform;
  const cure =
    isForPlatform && needed === 'operate'
      ? 'which nobody has who acts for a platform'
      : `the operator issues one: artseal token create --name NAME --scopes ${needed}`;
  throw new ApiError('PERMISSION_DENIED', `${name} needs a token with the scope ${needed}; ${cure}.`);
}
