import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ExpiredYearSchema, MaintenanceService } from '../../../gen/artseal/v1/maintenance_pb.ts';
import { checkReason } from '../../domain/audit-entry.ts';
import { yearOfFiling } from '../../domain/filing.ts';
import { type ExpiredFiling, erasedPerRequestMax } from '../../store/operator-commands.ts';
import type { Operations } from '../operation.ts';
import { actorOf } from '../principal.ts';
import type { ServiceDependencies } from './dependencies.ts';

/** The operations of MaintenanceService on filings whose retention period is over. */
export function createRetentionOperations({
  clock,
  paging,
  timestamp,
  executeApart,
}: ServiceDependencies): Pick<Operations<typeof MaintenanceService>, 'countExpired' | 'eraseExpired'> {
  /** A list request whose page is as long as one command allows. */
  const whole = <R>(request: R) => ({ ...request, pageSize: 0 });
  const pageFrom = (from: number | undefined) => ({ from, size: erasedPerRequestMax });

  return {
    countExpired: {
      check: (message, principal) => paging.check(whole(message), principal),
      run: async (message, call) => {
        const request = whole(message);
        const page = pageFrom(paging.query(request, call.principal).from);
        const nowS = Math.floor(clock.nowMs() / 1_000);
        const found = await call.execute({ kind: 'ListExpired', nowS, page });
        return {
          years: yearsOf(found.items),
          recordedUpTo: timestamp(found.beforeS * 1_000),
          nextPageToken: paging.token(found, request, call.principal),
        };
      },
    },
    eraseExpired: {
      check: (message, principal) => [
        ...paging.check(whole(message), principal),
        ...checkReason(message.reason),
      ],
      run: async (message, call) => {
        const request = whole(message);
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
