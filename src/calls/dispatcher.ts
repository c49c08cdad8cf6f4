import { create, type DescMethodUnary, type DescService, type Message } from '@bufbuild/protobuf';
import { Refusal } from '../domain/reason.ts';
import { type Scope, scopeNeeded } from '../domain/token.ts';
import { refuseViolations, type Violation } from '../domain/violation.ts';
import { type Call, type Implementation, isWriting } from './operation.ts';
import { type Principal, scopesOf } from './principal.ts';

/** The operations, by their methods. */
export interface Dispatcher {
  readonly services: readonly DescService[];
  /**
   * Calls the operation of a method. `violations` are those that were found when the message was read; they are refused
   * together with the operation's own. Throws Refusal, or anything for what is not foreseen.
   */
  invoke(
    method: DescMethodUnary,
    message: Message,
    call: Call,
    violations?: readonly Violation[],
  ): Promise<Message>;
}

export function createDispatcher(implementations: readonly Implementation[]): Dispatcher {
  const entries = implementations.flatMap(({ scope, operations }) =>
    [...operations].map(([method, operation]) => {
      return [method, { needed: scopeNeeded(scope, isWriting(method)), operation }] as const;
    }),
  );
  const served = new Map(entries);
  return {
    services: implementations.map(({ service }) => service),
    invoke: async (method, message, call, violations = []) => {
      const found = served.get(method);
      if (found === undefined) throw new Refusal('NOT_FOUND', `${method.name} is not served.`);
      const { needed, operation } = found;
      refuseWithoutScope(needed, call.principal, method);
      const parsed = operation.parse(message, call.principal);
      // What was sent tells more than what became of it: of two violations of one field, the first is told.
      refuseViolations([...violations, ...(parsed.violations ?? [])]);
      if (parsed.run === undefined) throw new Error(`${method.name} gave neither input nor violations.`);
      return create(method.output, await parsed.run(call));
    },
  };
}

/** Throws PERMISSION_DENIED. */
function refuseWithoutScope(needed: Scope, principal: Principal, { name }: DescMethodUnary): void {
  if (scopesOf(principal).includes(needed)) return;
  const isForPlatform = principal.kind === 'platform' || principal.isPlatform;
  const cure =
    isForPlatform && needed === 'operate'
      ? 'which nobody has who acts for a platform'
      : `the operator issues one: artseal token create --name NAME --scopes ${needed}`;
  throw new Refusal('PERMISSION_DENIED', `${name} needs a token with the scope ${needed}; ${cure}.`);
}
