import type { AdminService } from '../../../gen/artseal/v1/admin_pb.ts';
import { checkSince, instantOf } from '../../domain/calendar.ts';
import type { Violation } from '../../domain/violation.ts';
import type { Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { eventMessage } from './event-message.ts';
import { callerNamed, checkAfter, numberOf, readEvents } from './event-service.ts';

/** The operation of AdminService that lists events. */
export function createEventOperations(
  making: ServiceDependencies,
): Pick<Operations<typeof AdminService>, 'listAllEvents'> {
  return {
    listAllEvents: {
      check: ({ after, since }) => [...checkAfter(after), ...checkSince(since), ...checkStart(after, since)],
      run: async ({ platform, after, since }, { execute }) => {
        const callerId = platform === '' ? undefined : await callerNamed(platform, execute);
        const from = { after: numberOf(after), sinceMs: instantOf(since) };
        const { events, next } = await readEvents({ callerId, ...from }, execute);
        const entries = events.map((event) => ({
          ...{ event: eventMessage(event, making), platform: event.caller, position: BigInt(event.position) },
        }));
        return { entries, next: BigInt(next) };
      },
    },
  };
}

function checkStart(after: bigint | undefined, since: string): Violation[] {
  if (after === undefined || since === '') return [];
  return [{ field: 'since', rule: 'must be left out if after is given' }];
}
