import type { MessageInitShape } from '@bufbuild/protobuf';
import type { LogKeySchema, MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { checkReason } from '../../domain/audit-entry.ts';
import { ApiError } from '../../domain/reason.ts';
import type { Violation } from '../../domain/violation.ts';
import { hasEnded, isAhead, mintLogKey, signsAt } from '../../evidence/log/signing-keys.ts';
import type { LogKey } from '../../store/log-commands.ts';
import { actorOf, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** How long the earlier keys sign besides a new one by default, in seconds. */
const overlapDefaultS = 30 * 86_400;
/** The longest delay of a new key and the longest overlap, in seconds. */
const longestS = 366 * 86_400;

/** The operations of MaintenanceService on the keys of the evidence log. */
export function createLogKeyOperations({
  clock,
  keyRing,
  timestamp,
  executeApart,
  refreshLogKeys,
}: ServiceDependencies): Pick<Operations<typeof MaintenanceService>, 'listLogKeys' | 'rotateLogKey'> {
  const nowS = () => Math.floor(clock.nowMs() / 1_000);
  const shown = (key: LogKey) => keyMessage(key, signsAt(key, nowS()), timestamp);

  return {
    listLogKeys: {
      run: async (_, { execute }) => {
        const { keys } = await execute({ kind: 'GetLog' });
        const atS = nowS();
        const live = keys.filter((key) => !hasEnded(key, atS));
        // The order of keys that are both ahead, or both not, stays: newest first.
        const sorted = live.toSorted((one, other) => Number(isAhead(one, atS)) - Number(isAhead(other, atS)));
        return { keys: sorted.map(shown) };
      },
    },
    rotateLogKey: {
      check: ({ signsInSeconds, overlapSeconds = overlapDefaultS, reason }) => [
        ...checkDelay('signsInSeconds', signsInSeconds),
        ...checkDelay('overlapSeconds', overlapSeconds),
        ...checkReason(reason),
      ],
      run: async ({ signsInSeconds, overlapSeconds = overlapDefaultS, reason }, call) => {
        const by = actorOf(call, clock, reason);
        const { origin } = await executeApart({ kind: 'GetLog' });
        if (origin === undefined)
          throw new ApiError(
            'NOT_FOUND',
            'The evidence log has no key yet: the first artseal serve creates it.',
          );
        const startS = by.atS + signsInSeconds;
        const rotated = await call.execute({
          ...{ kind: 'RotateLogKey', by, key: mintLogKey(origin, keyRing, by.atS) },
          endsAtS: startS + overlapSeconds,
          signsFromS: signsInSeconds > 0 ? startS : undefined,
        });
        await refreshLogKeys();
        const { keys } = await executeApart({ kind: 'GetLog' });
        const added = keys.find(({ vkey }) => vkey === rotated.vkey);
        return { ...(added && { key: shown(added) }), othersEndAt: timestamp(rotated.endsAtS * 1_000) };
      },
    },
  };
}

function checkDelay(field: string, seconds: number): Violation[] {
  if (seconds >= 0 && seconds <= longestS) return [];
  return [{ field, rule: `must be 0 to ${longestS}` }];
}

function keyMessage(
  { vkey, addedAtS, signsFromS, endsAtS }: LogKey,
  isSigning: boolean,
  timestamp: ServiceDependencies['timestamp'],
): MessageInitShape<typeof LogKeySchema> {
  return {
    vkey,
    addedAt: timestamp(addedAtS * 1_000),
    signsFrom: timestamp((signsFromS ?? addedAtS) * 1_000),
    endsAt: endsAtS === null ? '' : timestamp(endsAtS * 1_000),
    isSigning,
  };
}
