import type { Artwork, Filing } from '../domain/filing.ts';
import type { Provenance } from '../domain/provenance.ts';
import type { Page, PageQuery } from './paging.ts';

/** A caller. */
export interface CallerRef {
  readonly callerId: number;
  readonly caller: string;
}

/** Which filings to list; undefined is any. */
export interface FilingFilter {
  readonly owner: number | undefined;
  /** Of the number. */
  readonly year: number | undefined;
}

/** An instant of the business clock, and its timestamp in the business time zone. */
export interface BusinessTime {
  readonly atMs: number;
  /** RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
  /** The same instant by the real clock, if that differs. */
  readonly real?: Omit<BusinessTime, 'real'> | undefined;
}

/** The real time of an instant, which evidence and numbers have. */
export const realTime = (at: BusinessTime): Omit<BusinessTime, 'real'> => at.real ?? at;

/** Filings and their provenance: append-only. */
export interface FilingCommands {
  /**
   * Files an artwork under the next number of the year of the real time, or of the newest record if that is later by up to
   * `behindMaxS`: the filing then has the time of that record. Numbers have no gaps except after a restore. Fails with
   * FILING_NUMBERS_EXHAUSTED; with FILING_CAP_REACHED if the caller has used its `cap` for the year; and with UNAVAILABLE while
   * `findClockFault` reports a fault. `clockSetByS` is its `setByS`, 0 by default.
   */
  FileArtwork(command: {
    readonly artwork: Artwork;
    /** The canonical JSON of the attachments; null or undefined if there are none. */
    readonly attachments?: string | null;
    readonly at: BusinessTime;
    readonly by: CallerRef;
    readonly clockSetByS?: number;
    /** Set by the store if this may have waited while other instances filed. The newest record may then be later by a minute. */
    readonly isLate?: boolean;
    /** Undefined for no cap. The year ends in `endsInS` seconds. */
    readonly cap?: { readonly filings: number; readonly endsInS: number } | undefined;
  }): Pick<Filing, 'filingNo' | 'hash' | 'timestamp'>;
  /** Returns a filing of `owner`, or of any caller if that is undefined. */
  GetFiling(command: { readonly filingNo: string; readonly owner: number | undefined }): Filing | undefined;
  /** Lists filings, newest first. */
  ListFilings(command: { readonly filter: FilingFilter; readonly page: PageQuery }): Page<Filing>;
  /** Returns the circulation records of a filing. The first is its submission on the day of its timestamp. */
  GetProvenance(command: { readonly filingNo: string }): Provenance | undefined;
}
