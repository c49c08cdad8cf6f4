import type { Actor } from '../domain/audit-entry.ts';
import type { Page, PageQuery } from './paging.ts';

/** How many filings one command erases at most: whoever has to write waits for it. */
export const erasedAtOnceMax = 500;

/** Erasing filings whose retention is over. */
export interface RetentionCommands {
  /**
   * Filings that may be erased at `nowS`, Unix seconds, oldest first: each record of theirs is more than `retentionYears` old,
   * by that time and by the store's own clock, and none of their orders is UNPAID or FROZEN. `beforeS` is when their records
   * were made at the latest, Unix seconds.
   */
  ListExpired: {
    readonly takes: { readonly nowS: number; readonly page: PageQuery };
    readonly gives: Page<ExpiredFiling> & { readonly beforeS: number };
  };
  /**
   * Erases those of these filings, `erasedAtOnceMax` at most, that may be erased at the time of the act: texts, price, hash, and
   * the salts of all of their records. A leaf of the log lists the leaves of those. Numbers, times, leaves and orders stay.
   * Gives what went.
   */
  EraseFilings: {
    readonly takes: { readonly by: Actor; readonly filingNos: readonly string[] };
    readonly gives: readonly ExpiredFiling[];
  };
}

/** A filing whose retention is over. */
export interface ExpiredFiling {
  readonly filingNo: string;
  /** How many records it has, itself included. */
  readonly records: number;
}
