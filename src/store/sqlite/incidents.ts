import type { IncidentCounts, StorageErrors } from '../store.ts';
import { isBusy, isDamage, isMachineFault } from './failure.ts';

/** Counts incidents since the store was opened. */
export interface Incidents {
  count(what: keyof IncidentCounts): void;
  /** Counts an error of a write or a read if it is a storage error. */
  meet(error: unknown, access: 'write' | 'read'): void;
  counts(): IncidentCounts;
  /** The same object until there is another error. */
  storageErrors(): StorageErrors;
}

export function createIncidents(): Incidents {
  const counts = { clockRejections: 0, damagedRecords: 0 };
  let errors = noStorageErrors;
  return {
    count: (what) => {
      counts[what] += 1;
    },
    meet: (error, access) => {
      if (isDamage(error)) {
        counts.damagedRecords += 1;
        errors = { ...errors, damage: errors.damage ?? error.message };
      } else if (isMachineFault(error) && !isBusy(error)) {
        const lastFailure = `a ${access} failed: ${error.message}`;
        errors = { ...errors, failures: errors.failures + 1, lastFailure };
      }
    },
    counts: () => ({ ...counts }),
    storageErrors: () => errors,
  };
}

/** The errors of a store that was just opened. */
export const noStorageErrors: StorageErrors = { failures: 0, lastFailure: undefined, damage: undefined };
