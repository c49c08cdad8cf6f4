import { CheckResponse_Level, type MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { type Operations, parsed, streaming } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** The check of the deployment. A child process does it. */
export function createCheckOperation({
  check,
}: ServiceDependencies): Pick<Operations<typeof MaintenanceService>, 'check'> {
  return {
    check: streaming({
      parse: () => parsed([], () => undefined),
      run: async function* (_, { signal }) {
        for await (const { level: word, ...finding } of check(signal)) {
          const level = CheckResponse_Level[word.toUpperCase() as Uppercase<typeof word>];
          yield { ...finding, level };
        }
      },
    }),
  };
}
