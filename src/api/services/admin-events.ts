import type { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { checkSince, instantOf } from '../../domain/calendar.ts';
import type { Violation } from '../../domain/violation.ts';
import { type Operations, operation, parsed } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { eventMessage } from './event-message.ts';
import { callerNamed, checkAfter, readEvents } from './event-service.ts';

/** The operation of AdminService that lists events. */
export function createEventOperations(
  making: ServiceDependencies,
): Pick<Operations<typeof AdminService>, 'listAllEvents'> {
  return {
    listAllEvents: operation({
      parse: ({ platform, after, since }) => {
        const violations = [...checkAfter(after), ...checkSince(since), ...checkStart(after, since)];
        return parsed(violations, () => ({
          ...{ platform, sinceMs: instantOf(since) },
          after: after === undefined ? undefined : Number(after),
        }));
      },
      run: async ({ platform, ...from }, { execute }) => {
        const callerId = platform === '' ? undefined : await callerNamed(platform, execute);
        const { events, next } = await readEvents({ callerId, ...from }, execute);
        const entries = events.map((event) => ({
          ...{ event: eventMessage(event, making), platform: event.caller, position: BigInt(event.position) },
        }));
        return { entries, next: BigInt(next) };
      },
    }),
  };
}

function checkStart(after: bigint | undefined, since: string): Violation[] {
  if (after === undefined || since === '') return [];
  return [{ field: 'since', rule: 'must be left out if after is given' }];
}
