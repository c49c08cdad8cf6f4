import { and, eq, sql } from 'drizzle-orm';
import type { QuotaClaim } from '../store.ts';
import type { Database } from './connection.ts';
import { usage } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';

/** Calls counted by caller and month. Call `take` inside a transaction. */
export interface Quotas {
  /** Counts a call. Returns the new count; undefined if all calls of the month are used. */
  take(claim: QuotaClaim): number | undefined;
  /** The current count. */
  counted(claim: Pick<QuotaClaim, 'callerId' | 'month'>): number;
}

/** Prepares the query of the calls of a caller in a month. */
export function countCalls(database: Database): Quotas['counted'] {
  const isOfMonth = and(
    eq(usage.callerId, sql.placeholder('callerId')),
    eq(usage.month, sql.placeholder('month')),
  );
  const select = prepareRaw<{ calls: number }>(
    database,
    database.select({ calls: usage.calls }).from(usage).where(isOfMonth),
  );
  return ({ callerId, month }) => select.get({ callerId, month })?.calls ?? 0;
}

/** The counts of a database. */
export function createQuotas(database: Database): Quotas {
  const counted = countCalls(database);
  // Two statements are cheaper than one that returns what it changed.
  const write = prepareRaw(
    database,
    database
      .insert(usage)
      .values(placeholdersFor(usage))
      .onConflictDoUpdate({ target: [usage.callerId, usage.month], set: { calls: sql`excluded.calls` } }),
  );
  return {
    take: ({ callerId, month, limit = Number.POSITIVE_INFINITY }) => {
      const calls = counted({ callerId, month }) + 1;
      if (calls > limit) return undefined;
      write.run({ callerId, month, calls });
      return calls;
    },
    counted,
  };
}
