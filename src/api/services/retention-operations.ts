import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ExpiredYearSchema, MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { checkReason } from '../../domain/audit-entry.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { type ExpiredFiling, erasedPerRequestMax } from '../../store/operator-commands.ts';
import { actorOf, type Operations } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { listing } from './paging.ts';

/** The operations of MaintenanceService on filings whose retention period is over. */
export function createRetentionOperations({
  clock,
  paging,
  timestamp,
  executeApart,
}: ServiceDependencies): Pick<Operations<typeof MaintenanceService>, 'countExpired' | 'eraseExpired'> {
  /** A page that is as long as one command allows. */
  const pageFrom = (from: number | undefined) => ({ from, size: erasedPerRequestMax });

  return {
    countExpired: listing(paging, {
      find: (_, { from }, { execute }) => {
        const nowS = Math.floor(clock.nowMs() / 1_000);
        return execute({ kind: 'ListExpired', nowS, page: pageFrom(from) });
      },
      respond: ({ items, beforeS }) => ({
        years: yearsOf(items),
        recordedUpTo: timestamp(beforeS * 1_000),
      }),
    }),
    eraseExpired: {
      check: (request, principal) => [...paging.check(request, principal), ...checkReason(request.reason)],
      run: async (request, call) => {
        const by = actorOf(call, clock, request.reason);
        const { from } = paging.query(request, call.principal);
        const listed = await executeApart({ kind: 'ListExpired', nowS: by.atS, page: pageFrom(from) });
        const filingNos = listed.items.map(({ filingNo }) => filingNo);
        const erased = await call.execute({ kind: 'EraseFilings', by, filingNos });
        // A replay returns what the first call erased. What is listed now comes after that.
        const isReplay = erased[0] !== undefined && !filingNos.includes(erased[0].filingNo);
        const next = isReplay ? (from ?? 0) : listed.next;
        return {
          years: yearsOf(erased),
          nextPageToken: paging.token({ items: [], next }, request, call.principal),
        };
      },
    },
  };
}

/** Counts filings by the year of their numbers. */
function yearsOf(filings: readonly ExpiredFiling[]): MessageInitShape<typeof ExpiredYearSchema>[] {
  const byYear = Map.groupBy(filings, ({ filingNo }) => yearOfFiling(filingNo));
  return Array.from(byYear, ([year, some]) => ({
    year,
    filings: some.length,
    records: some.reduce((sum, { records }) => sum + records, 0),
    firstFilingNo: some.at(0)?.filingNo ?? '',
    lastFilingNo: some.at(-1)?.filingNo ?? '',
  }));
}
