import type { Artwork, Filing } from '../domain/filing.ts';
import type { Provenance } from '../domain/provenance.ts';
import type { Page, PageQuery } from './paging.ts';

/** Who does something. */
export interface CallerRef {
  readonly callerId: number;
  /** Its name. */
  readonly caller: string;
}

/** Which filings to list; undefined is any. */
export interface FilingFilter {
  readonly owner: number | undefined;
  /** Of the number. */
  readonly year: number | undefined;
}

/** An instant, and what the business calendar calls it. */
export interface BusinessTime {
  readonly atMs: number;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
}

/** Filings and their provenance: append-only. */
export interface FilingCommands {
  /**
   * Files an artwork under the next number of the timestamp's year, without gaps but for those of a restoration, with its
   * evidence hash: what it was given. Refused with FILING_NUMBERS_EXHAUSTED; with FILING_CAP_REACHED if the caller has as many
   * filings of the year as `cap` allows; and with UNAVAILABLE as long as `findClockFault` finds something; `clockSetByS` is its
   * `setByS`, 0 if left out.
   */
  FileArtwork: {
    readonly takes: {
      readonly artwork: Artwork;
      readonly at: BusinessTime;
      readonly by: CallerRef;
      readonly clockSetByS?: number;
      /** Undefined for a caller without a cap; the year ends in `endsInS` seconds. */
      readonly cap?: { readonly filings: number; readonly endsInS: number } | undefined;
    };
    readonly gives: Pick<Filing, 'filingNo' | 'hash' | 'timestamp'>;
  };
  /** One filing of `owner`, or of anybody if that is undefined. */
  GetFiling: {
    readonly takes: { readonly filingNo: string; readonly owner: number | undefined };
    readonly gives: Filing | undefined;
  };
  /** Filings that the filter names, newest first. */
  ListFilings: {
    readonly takes: { readonly filter: FilingFilter; readonly page: PageQuery };
    readonly gives: Page<Filing>;
  };
  /** The circulation records of a filing, of which the first is its submission on the day of its timestamp. */
  GetProvenance: {
    readonly takes: { readonly filingNo: string };
    readonly gives: Provenance | undefined;
  };
}
