import { ProvenanceRecord_Event, ProvenanceService } from '../../../gen/artseal/v1/provenance_pb.ts';
import { filingNotFound, retentionYears } from '../../domain/filing.ts';
import { type Implementation, implement } from '../operation.ts';

/** The operations of ProvenanceService. Every caller may read the records of every filing. */
export function createProvenanceService(): Implementation {
  return implement(ProvenanceService, 'read', {
    getProvenance: {
      run: async ({ filingNo }, call) => {
        const provenance = await call.execute({ kind: 'GetProvenance', filingNo });
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
