import type { MessageInitShape } from '@bufbuild/protobuf';
import { Filing_Status, type FilingSchema, FilingService } from '../../../gen/artseal/v1/filing_pb.ts';
import {
  canonicalAttachments,
  checkArtwork,
  checkAttachments,
  evidenceChain,
  type Filing,
  filingNotFound,
  filingsHalted,
} from '../../domain/filing.ts';
import { apiErrorData, type Violation } from '../../domain/violation.ts';
import { type BusinessTime, realTime } from '../../store/filing-commands.ts';
import { type Call, callerOf, type Implementation, implement, ownerScope } from '../operation.ts';
import type { ServiceDependencies } from './dependencies.ts';
import { listing } from './paging.ts';

/** The operations of FilingService. A platform sees its own filings, an internal system all of them. */
export function createFilingService({
  now,
  calendar,
  filingClock,
  isRolledBack,
  currency,
  paging,
}: ServiceDependencies): Implementation {
  /** The cap of the platform that a call is for, in the year of a time; undefined if it has none. */
  function capOf({ principal: { filingCap } }: Call, at: BusinessTime) {
    if (filingCap === undefined) return undefined;
    const { atMs } = realTime(at);
    return { filings: filingCap, endsInS: Math.ceil((calendar.yearEndsAtMs(atMs) - atMs) / 1_000) };
  }
  const shown = (filing: Filing) => toMessage(filing, currency);
  return implement(FilingService, 'file', {
    createFiling: {
      check: (request) => [...checkArtwork(request), ...checkAttachments(request.attachments)],
      run: async (request, call) => {
        const { author, era, size, material, condition, price = 0n } = request;
        const at = now();
        const file = {
          kind: 'FileArtwork',
          artwork: { author, era, size, material, condition, price },
          attachments: canonicalAttachments(request.attachments),
          ...{ at, by: callerOf(call), cap: capOf(call, at) },
        } as const;
        // Rejected in the store, so that a replay gets the earlier response.
        const filed = await (isRolledBack()
          ? call.execute({ kind: 'Reject', apiError: apiErrorData(filingsHalted()) })
          : call.execute({ ...file, clockSetByS: filingClock.setByS() }));
        const { filingNo, hash, timestamp } = filed;
        return { filingNo, status: Filing_Status.SUBMITTED, chain: evidenceChain, hash, timestamp };
      },
    },
    getFiling: {
      run: async ({ filingNo }, call) => {
        const filing = await call.execute({ kind: 'GetFiling', filingNo, owner: ownerScope(call.principal) });
        if (filing === undefined) throw filingNotFound();
        return { filing: shown(filing) };
      },
    },
    listFilings: listing(paging, {
      check: ({ year }) => checkYear(year),
      find: ({ year }, page, call) => {
        const filter = { owner: ownerScope(call.principal), year: year || undefined };
        return call.execute({ kind: 'ListFilings', filter, page });
      },
      respond: ({ items }) => ({ filings: items.map(shown) }),
    }),
  });
}

function checkYear(year: number): Violation[] {
  if (year >= 0 && year <= 9_999) return [];
  return [{ field: 'year', rule: 'must be an integer from 1 to 9999, or 0 for all' }];
}

function toMessage(filing: Filing, currency: string): MessageInitShape<typeof FilingSchema> {
  const attachments = [...filing.attachments];
  return { ...filing, attachments, currency, status: Filing_Status.SUBMITTED, chain: evidenceChain };
}
