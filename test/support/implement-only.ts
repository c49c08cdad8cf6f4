import type { DescService } from '@bufbuild/protobuf';
import { type Implementation, implement, type Operations } from '../../src/api/operation.ts';
import type { Scope } from '../../src/domain/token.ts';

/** Pairs a service that has only some of its methods with their operations. */
export function implementOnly<S extends DescService>(
  service: S,
  scope: Scope,
  operations: Partial<Operations<S>>,
): Implementation {
  const methods = service.methods.filter(({ localName }) => localName in operations);
  return implement({ ...service, methods }, scope, operations as never);
}
