import type { DescService, Message } from '@bufbuild/protobuf';
import type { Implementation } from '../../src/api/operation.ts';
import { rejectViolations } from '../../src/domain/violation.ts';
import { parseRequestTarget } from '../../src/http/rest/http-message.ts';
import { createRoutes, findRoute } from '../../src/http/rest/routes.ts';
import { ledger } from './tokens.ts';

/**
 * Returns a function that reads a request as the REST route and the operation parse it. It throws VALIDATION_FAILED and
 * INVALID_JSON.
 */
export function requestReader(service: DescService, { operations }: Pick<Implementation, 'operations'>) {
  const routes = createRoutes([service]);
  return (verb: string, target: string, body = ''): Message => {
    const parsedTarget = parseRequestTarget(target);
    const route = findRoute(routes, verb, parsedTarget);
    const { message, violations } = route.read(parsedTarget, Buffer.from(body));
    const more = operations.get(route.method)?.check?.(message, ledger) ?? [];
    rejectViolations([...violations, ...more]);
    return message;
  };
}
