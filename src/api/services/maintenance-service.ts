import {
  CheckResponse_Level,
  MaintenanceService,
  ReloadResponse_Part_Result,
} from '../../../gen/artseal/v1/maintenance_pb.ts';
import { checkReasoned } from '../../domain/audit-entry.ts';
import { clockFaultText, findClockFault } from '../../domain/filing-clock.ts';
import { actorOf, type Implementation, implement, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { createLogKeyOperations } from './log-key-operations.ts';
import { createRetentionOperations } from './retention-operations.ts';
import { createSecretOperations } from './secret-operations.ts';

/** MaintenanceService, for operators. */
export function createMaintenanceService(dependencies: ServiceDependencies): Implementation {
  const { check, reload } = dependencies;
  return implement(MaintenanceService, 'operate', {
    ...createClockOperations(dependencies),
    ...createRetentionOperations(dependencies),
    ...createSecretOperations(dependencies),
    ...createLogKeyOperations(dependencies),
    check: {
      run: async function* (_, { signal }) {
        for await (const { level: word, ...finding } of check(signal)) {
          const level = CheckResponse_Level[word.toUpperCase() as Uppercase<typeof word>];
          yield { ...finding, level };
        }
      },
    },
    reload: {
      run: async (_, call) => {
        await call.admit();
        const parts = await reload();
        return { parts: parts.map((part) => ({ ...part, result: ReloadResponse_Part_Result[part.result] })) };
      },
    },
  });
}

function createClockOperations({
  clock,
  clockSetByS,
  refreshFilingClock,
  timestamp,
}: ServiceDependencies): Pick<Operations<typeof MaintenanceService>, 'getClock' | 'acceptClock'> {
  const at = (atS: number | undefined) => (atS === undefined ? '' : timestamp(atS * 1_000));
  return {
    getClock: {
      run: async (_, { execute }) => {
        const { newestS, datedS } = await execute({ kind: 'ReadLogClock' });
        // Read after the store, so that no stored time is newer.
        const nowS = Math.floor(clock.nowMs() / 1_000);
        const fault = findClockFault({ nowS, newestS, datedS, setByS: clockSetByS() });
        return { clock: at(nowS), newestRecord: at(newestS), fault: fault ? clockFaultText(fault) : '' };
      },
    },
    acceptClock: {
      check: checkReasoned,
      run: async ({ reason }, call) => {
        const by = actorOf(call, clock, reason);
        const { acceptedS, newestS } = await call.execute({ kind: 'AcceptClock', by });
        await refreshFilingClock();
        return { accepted: at(acceptedS), newestRecord: at(newestS) };
      },
    },
  };
}
