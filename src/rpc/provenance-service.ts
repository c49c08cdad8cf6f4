import { ProvenanceRecord_Event, ProvenanceService } from '../../gen/artseal/v1/provenance_pb.ts';
import { filingNotFound, retentionYears } from '../domain/filing.ts';
import type { FilingStore } from '../store/store.ts';
import { type Implementation, implement } from './operation.ts';

/** What the provenance operations need. */
export interface ProvenanceDependencies {
  readonly filings: FilingStore;
}

/** ProvenanceService. */
export function createProvenanceService({ filings }: ProvenanceDependencies): Implementation {
  return implement(ProvenanceService, {
    getProvenance: {
      check: () => [],
      run: async ({ filingNo }) => {
        const provenance = await filings.provenance(filingNo);
        if (provenance === undefined) throw filingNotFound();
        const records = provenance.records.map(({ event, at }) => ({
          event: ProvenanceRecord_Event[event],
          at,
        }));
        return { filingNo, author: provenance.author, records, retentionYears };
      },
    },
  });
}
