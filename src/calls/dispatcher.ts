import { create, type DescMethodUnary, type DescService, type Message } from '@bufbuild/protobuf';
import { Refusal } from '../domain/reason.ts';
import { refuseViolations, type Violation } from '../domain/violation.ts';
import type { Audience, Call, Implementation } from './operation.ts';
import type { Principal } from './principal.ts';

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
  const entries = implementations.flatMap(({ audience, operations }) =>
    [...operations].map(([method, operation]) => [method, { audience, operation }] as const),
  );
  const served = new Map(entries);
  return {
    services: implementations.map(({ service }) => service),
    invoke: async (method, message, call, violations = []) => {
      const found = served.get(method);
      if (found === undefined) throw new Refusal('NOT_FOUND', `${method.name} is not served.`);
      const { audience, operation } = found;
      refuseStrangers(audience, call.principal, method);
      const parsed = operation.parse(message, call.principal);
      // What was sent tells more than what became of it: of two violations of one field, the first is told.
      refuseViolations([...violations, ...(parsed.violations ?? [])]);
      if (parsed.run === undefined) throw new Error(`${method.name} gave neither input nor violations.`);
      return create(method.output, await parsed.run(call));
    },
  };
}

/** Throws PERMISSION_DENIED. */
function refuseStrangers(audience: Audience, principal: Principal, { name }: DescMethodUnary): void {
  const isOperator = principal.kind === 'service' && principal.operator;
  if (audience === 'OPERATORS' && !isOperator) {
    throw new Refusal('PERMISSION_DENIED', `${name} is for operators: it needs an operator token.`);
  }
}
