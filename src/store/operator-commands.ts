import type { Actor, AuditEntry } from '../domain/audit-entry.ts';
import type { Page, PageQuery } from './paging.ts';

/** The audit log. Each entry is written in the transaction of its change, and never changes. */
export interface AuditCommands {
  /** Lists entries, newest first; only those from `sinceS`, Unix seconds, if given. */
  ListAuditLog(command: { readonly sinceS: number | undefined; readonly page: PageQuery }): Page<AuditEntry>;
}

/** Filings that one command erases, at most. Other writes wait for it. */
export const erasedPerRequestMax = 500;

/** Erasure of filings after their retention period. */
export interface RetentionCommands {
  /**
   * Lists filings that may be erased at `nowS`, Unix seconds, oldest first: all their records are older than `retentionYears`,
   * by `nowS` and by the store's own clock, and none of their orders is UNPAID or FROZEN. `beforeS` is the latest time of such a
   * record, Unix seconds.
   */
  ListExpired(command: {
    readonly nowS: number;
    readonly page: PageQuery;
  }): Page<ExpiredFiling> & { readonly beforeS: number };
  /**
   * Erases those of the given filings, `erasedPerRequestMax` at most, that may be erased at the time of `by`: texts, price, hash,
   * and the salts of all their records. A log leaf lists the leaves of these records. Numbers, times, leaves and orders stay.
   * Returns the erased filings. Once no other process reads the database, its files hold their texts only in unused parts.
   */
  EraseFilings(command: {
    readonly by: Actor;
    readonly filingNos: readonly string[];
  }): readonly ExpiredFiling[];
}

/** A filing whose retention period is over. */
export interface ExpiredFiling {
  readonly filingNo: string;
  /** The number of its records, including the filing. */
  readonly records: number;
}

/** The state after a restore from a backup. */
export interface RestorationCommands {
  /** Returns the last restoration; undefined if the store was never restored. */
  FindRestoration(): Restoration | undefined;
  /**
   * Records that the store is served for the first time after a restore, Unix seconds; does nothing otherwise. The skipped
   * filing numbers become a leaf NUMBERS_SKIPPED of the evidence log.
   */
  RecordServing(command: { readonly atS: number }): undefined;
}

/** A restoration from a backup. */
export interface Restoration {
  /** When the restored store was first served, Unix seconds; undefined if it was not. The original had stopped by then. */
  readonly servedAtS: number | undefined;
}
