import type { AuditEntry } from '../domain/audit-entry.ts';
import type { Page, PageQuery } from './paging.ts';

/** The audit log. Each entry is written in the transaction of its change, and never changes. */
export interface AuditCommands {
  /** Lists entries, newest first; only those from `sinceS`, Unix seconds, if given. */
  ListAuditLog: {
    readonly takes: { readonly sinceS: number | undefined; readonly page: PageQuery };
    readonly gives: Page<AuditEntry>;
  };
}
