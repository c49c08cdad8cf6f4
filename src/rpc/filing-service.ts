import type { MessageInitShape } from '@bufbuild/protobuf';
import { Filing_Status, type FilingSchema, FilingService } from '../../gen/artseal/v1/filing_pb.ts';
import { ownerScope } from '../access/principal.ts';
import { checkArtwork, evidenceChain, type Filing, filingNotFound } from '../domain/filing.ts';
import type { Violation } from '../domain/violation.ts';
import type { BusinessTime, FilingStore } from '../store/store.ts';
import { type Implementation, implement } from './operation.ts';
import type { Paging } from './paging.ts';

/** What the filing operations need. */
export interface FilingDependencies {
  readonly filings: FilingStore;
  readonly now: () => BusinessTime;
  /** ISO 4217 code of all prices. */
  readonly currency: string;
  readonly paging: Paging;
}

/** FilingService. */
export function createFilingService(dependencies: FilingDependencies): Implementation {
  const { filings, now, currency, paging } = dependencies;
  const shown = (filing: Filing) => toMessage(filing, currency);
  return implement(FilingService, {
    createFiling: {
      check: checkArtwork,
      run: async ({ author, era, size, material, condition, price = 0n }, { principal }) => {
        const artwork = { author, era, size, material, condition, price };
        const { filingNo, hash, timestamp } = await filings.file(artwork, now(), principal);
        return { filingNo, status: Filing_Status.SUBMITTED, chain: evidenceChain, hash, timestamp };
      },
    },
    getFiling: {
      check: () => [],
      run: async ({ filingNo }, { principal }) => {
        const filing = await filings.find(filingNo, ownerScope(principal));
        if (filing === undefined) throw filingNotFound();
        return { filing: shown(filing) };
      },
    },
    listFilings: {
      check: (request, { principal }) => [...paging.check(request, principal), ...checkYear(request.year)],
      run: async (request, { principal }) => {
        const filter = { owner: ownerScope(principal), year: request.year || undefined };
        const page = await filings.list(filter, paging.query(request, principal));
        const nextPageToken = paging.token(page, request, principal);
        return { filings: page.items.map(shown), nextPageToken };
      },
    },
  });
}

function checkYear(year: number): Violation[] {
  if (year >= 0 && year <= 9_999) return [];
  return [{ field: 'year', rule: 'must be an integer from 1 to 9999, or 0 for all' }];
}

function toMessage(filing: Filing, currency: string): MessageInitShape<typeof FilingSchema> {
  return { ...filing, currency, status: Filing_Status.SUBMITTED, chain: evidenceChain };
}
