import { and, eq, sql } from 'drizzle-orm';
import { usage } from '../engine/schema.ts';
import { placeholdersFor } from '../engine/statement.ts';
import type { QuotaClaim } from '../store.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** Prepares the query of the calls of a caller in a month. */
export function countCalls(database: SqliteDatabase) {
  const isOfMonth = and(
    eq(usage.callerId, sql.placeholder('callerId')),
    eq(usage.month, sql.placeholder('month')),
  );
  const { select } = prepare(database, {
    select: database.select({ calls: usage.calls }).from(usage).where(isOfMonth),
  });
  return ({ callerId, month }: Pick<QuotaClaim, 'callerId' | 'month'>): number =>
    select.get({ callerId, month })?.calls ?? 0;
}

/** Calls counted by caller and month. */
export function createQuotas(database: SqliteDatabase) {
  const counted = countCalls(database);
  // Two statements are cheaper than one that returns what it changed.
  const { write } = prepare(database, {
    write: database
      .insert(usage)
      .values(placeholdersFor(usage))
      .onConflictDoUpdate({ target: [usage.callerId, usage.month], set: { calls: sql`excluded.calls` } }),
  });
  return {
    /** Counts a call, inside a transaction. Returns the new count; undefined if all calls of the month are used. */
    take: ({ callerId, month, limit = Number.POSITIVE_INFINITY }: QuotaClaim): number | undefined => {
      const calls = counted({ callerId, month }) + 1;
      if (calls > limit) return undefined;
      write.run({ callerId, month, calls });
      return calls;
    },
    counted,
  };
}
