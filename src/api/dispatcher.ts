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
import { rejectViolations, type Violation } from '../domain/violation.ts';
import { type Call, type Implementation, isWriting, type StreamCall } from './operation.ts';
import { type Principal, scopesOf } from './principal.ts';

/** Finds and calls the operation of a method. */
export interface Dispatcher {
  readonly services: readonly DescService[];
  /**
   * Calls the operation of a method. `violations` were found while the message was read; VALIDATION_FAILED names them together
   * with the operation's own. Throws ApiError, or any other error for a fault of the server.
   */
  invoke(
    method: DescMethodUnary,
    message: Message,
    call: Call,
    violations?: readonly Violation[],
  ): Promise<Message>;
  /** Calls the operation of a streaming method. Iterating throws as `invoke` does. */
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
    checkScope(found.needed, principal, method);
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
      for await (const response of run(call)) yield create(method.output, response);
    },
  };
}

/** The function that runs a parsed message. Throws VALIDATION_FAILED. */
function runnable<Run>(
  parsed: { readonly violations?: readonly Violation[]; readonly run?: Run },
  violations: readonly Violation[],
  { name }: DescMethod,
): Run {
  // The message names one violation of each field, the first. The reader's come first: they describe what the caller sent.
  rejectViolations([...violations, ...(parsed.violations ?? [])]);
  if (parsed.run === undefined) throw new Error(`${name} returned neither input nor violations.`);
  return parsed.run;
}

/** Throws PERMISSION_DENIED. */
function checkScope(needed: Scope, principal: Principal, { name }: DescMethod): void {
  if (scopesOf(principal).includes(needed)) return;
  const isForPlatform = principal.kind === 'platform' || principal.isPlatform;
  const remedy =
    isForPlatform && needed === 'operate'
      ? 'which tokens of platforms cannot have'
      : `the operator issues one: artseal token create --name NAME --scopes ${needed}`;
  throw new ApiError('PERMISSION_DENIED', `${name} needs a token with the scope ${needed}; ${remedy}.`);
}
