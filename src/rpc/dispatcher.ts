import { create, type DescMethodUnary, type DescService, type Message } from '@bufbuild/protobuf';
import { Refusal } from '../domain/reason.ts';
import { refuseViolations, type Violation } from '../domain/violation.ts';
import type { Call, Implementation } from './operation.ts';

/** What a door needs of the operations: to know them by their descriptors and to call them. */
export interface Dispatcher {
  readonly services: readonly DescService[];
  /**
   * Calls the operation of a method. `violations` are those that the door found while it read the request; they
   * are refused together with the operation's own. Throws Refusal, or anything for what is not foreseen.
   * The answer may leave the process only when the store is durable.
   */
  invoke(
    method: DescMethodUnary,
    request: Message,
    call: Call,
    violations?: readonly Violation[],
  ): Promise<Message>;
}

/** Dispatches to these implementations. */
export function createDispatcher(implementations: readonly Implementation[]): Dispatcher {
  const operations = new Map(implementations.flatMap((implementation) => [...implementation.operations]));
  return {
    services: implementations.map(({ service }) => service),
    invoke: async (method, request, call, violations = []) => {
      const operation = operations.get(method);
      if (operation === undefined) throw new Refusal('NOT_FOUND', `${method.name} is not served.`);
      const { principal } = call;
      if (operation.allowed === 'operator' && !(principal.kind === 'service' && principal.operator)) {
        throw new Refusal(
          'PERMISSION_DENIED',
          `${method.name} is for operators: it needs an operator token.`,
        );
      }
      // The door's violations first: of two for one field, what was sent tells more than what became of it.
      refuseViolations([...violations, ...operation.check(request, call)]);
      return create(method.output, await operation.run(request, call));
    },
  };
}
