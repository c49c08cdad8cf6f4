import { gte } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import { type Handlers, reads } from '../engine/handlers.ts';
import { newestFirst, pageOf } from '../engine/paging.ts';
import { auditEntry } from '../engine/schema.ts';
import { type Database, placeholdersFor, prepare } from '../engine/statement.ts';
import type { AuditCommands } from '../operator-commands.ts';

/**
 * Records what an operator changed, inside the effect. `before` and `after` are the public members of the subject, never a secret;
 * undefined if it did not exist before or after.
 */
export type RecordAudit = (
  by: Actor,
  action: string,
  subject: string,
  change: { readonly before?: object | undefined; readonly after?: object | undefined },
) => Promise<void>;

/** The log of a database. */
export function createAuditLog(database: Database): RecordAudit {
  // Prepared, because an import records thousands, and the serving process waits for it.
  const { insert } = prepare(database, {
    insert: database.insert(auditEntry).values(placeholdersFor(auditEntry, 'id')),
  });
  return async ({ actor, atS, reason = null }, action, subject, { before, after }) => {
    await insert.run({ atS, actor, action, subject, reason, before: jsonOf(before), after: jsonOf(after) });
  };
}

/** Handlers that read the log. */
export function createAuditHandlers(database: Database): Handlers<keyof AuditCommands> {
  return {
    ListAuditLog: reads(async ({ sinceS, page }) => {
      const isSince = sinceS === undefined ? undefined : gte(auditEntry.atS, sinceS);
      const entries = database.select().from(auditEntry).$dynamic();
      const rows = await newestFirst(entries, auditEntry.id, page, isSince);
      return pageOf(rows, page, ({ reason, before, after, ...row }) => ({
        ...row,
        reason: reason ?? undefined,
        before: before ?? undefined,
        after: after ?? undefined,
      }));
    }),
  };
}

/** Writes amounts as JSON numbers: none exceeds 2^53-1. */
const jsonOf = (value: object | undefined): string | null =>
  value === undefined
    ? null
    : JSON.stringify(value, (_, member) => (typeof member === 'bigint' ? Number(member) : member));
