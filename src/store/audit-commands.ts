import type { AuditEntry } from '../domain/audit-entry.ts';
import type { Page, PageQuery } from './paging.ts';

/** The log of what operators did. Each row is written in the transaction of what it tells, and never changes. */
export interface ActCommands {
  /** AuditEntries, newest first; those at or after `sinceS`, Unix seconds, if that is given. */
  ListAuditLog: {
    readonly takes: { readonly sinceS: number | undefined; readonly page: PageQuery };
    readonly gives: Page<AuditEntry>;
  };
}
