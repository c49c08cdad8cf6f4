import type { Act } from '../domain/audit-entry.ts';
import type { Page, PageQuery } from './paging.ts';

/** The log of what operators did. Each row is written in the transaction of what it tells, and never changes. */
export interface ActCommands {
  /** Acts, newest first; those at or after `sinceS`, Unix seconds, if that is given. */
  ListActs: {
    readonly takes: { readonly sinceS: number | undefined; readonly page: PageQuery };
    readonly gives: Page<Act>;
  };
}
