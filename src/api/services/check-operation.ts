import { CheckResponse_Level, type MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { type Operations, parsed, streaming } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';

const levels = {
  ok: CheckResponse_Level.OK,
  warning: CheckResponse_Level.WARNING,
  fault: CheckResponse_Level.FAULT,
  unchecked: CheckResponse_Level.UNCHECKED,
} as const;

/** The check of the deployment. A child process does it. */
export function createCheckOperation({
  check,
}: ServiceDependencies): Pick<Operations<typeof MaintenanceService>, 'check'> {
  return {
    check: streaming({
      parse: () => parsed([], () => undefined),
      run: async function* (_, { signal }) {
        for await (const { level, part, text } of check(signal)) yield { level: levels[level], part, text };
      },
    }),
  };
}
