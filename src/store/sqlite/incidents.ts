import type { IncidentCounts } from '../store.ts';

/** Counts what should not happen, since the store was opened. */
export interface Incidents {
  count(what: keyof IncidentCounts): void;
  counts(): IncidentCounts;
}

export function createIncidents(): Incidents {
  const counts = { clockRefusals: 0, damagedRecords: 0 };
  return {
    count: (what) => {
      counts[what] += 1;
    },
    counts: () => ({ ...counts }),
  };
}
