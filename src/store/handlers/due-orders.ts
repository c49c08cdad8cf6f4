import { and, asc, eq, exists, gt, gte, lte, max, or, type SQL, sql } from 'drizzle-orm';
import { caller, escrow, escrowChange } from '../engine/schema.ts';
import { type Database, named, prepare } from '../engine/statement.ts';

/** Selects due orders: due up to `nowMs`, or after `horizonMs`. */
interface DueRange {
  readonly nowMs: number;
  readonly horizonMs: number;
  readonly hasFailed: boolean;
}

/**
 * Finds the RELEASED orders with id % `shares` = `share` and a history entry as RELEASED since a time. Reads rows by id, so that
 * orders of other shares are not scanned.
 */
export function prepareReleased(database: Database) {
  const isRecent = database
    .select({ orderId: escrowChange.orderId })
    .from(escrowChange)
    .where(
      and(
        eq(escrowChange.orderId, escrow.id),
        sql`${escrowChange.state} = 'RELEASED'`,
        gte(escrowChange.changedAtS, sql.placeholder('sinceS')),
      ),
    );
  const { newest, released } = prepare(database, {
    newest: database.select(named({ id: max(escrow.id) })).from(escrow),
    released: database
      .select(named({ escrowId: escrow.escrowId }))
      .from(escrow)
      .where(and(eq(escrow.id, sql.placeholder('id')), sql`${escrow.state} = 'RELEASED'`, exists(isRecent))),
  });
  return async (share: number, shares: number, sinceMs: number): Promise<string[]> => {
    const [last, sinceS] = [(await newest.get())?.id ?? 0, Math.ceil(sinceMs / 1_000)];
    const found: string[] = [];
    for (let id = share; id <= last; id += shares) {
      const row = await released.get({ id, sinceS });
      if (row !== undefined) found.push(row.escrowId);
    }
    return found;
  };
}

/** Reads due orders by ranges of an index, so that orders that are not due are not scanned. */
export function prepareDue(database: Database) {
  const isOverdue = lte(escrow.lookUpAtMs, sql.placeholder('nowMs'));
  const isBeyond = gt(escrow.lookUpAtMs, sql.placeholder('horizonMs'));
  const hasFailed = sql`(${escrow.failedAttempts} > 0) = ${sql.placeholder('hasFailed')}`;
  const select = () =>
    database
      .select(named({ escrowId: escrow.escrowId, lookUpAtMs: sql<number>`${escrow.lookUpAtMs}` }))
      .from(escrow)
      .$dynamic();
  const someWhere = (...conditions: SQL[]) => select().where(and(...conditions));
  const ofCaller = (range: SQL) =>
    someWhere(eq(escrow.callerId, sql.placeholder('callerId')), hasFailed, range)
      .orderBy(asc(escrow.lookUpAtMs), asc(escrow.id))
      .limit(sql.placeholder('limit'));
  const isOfCaller = eq(escrow.callerId, caller.id);
  const { overdue, beyond, anyOverdue, anyBeyond, callers } = prepare(database, {
    overdue: ofCaller(isOverdue),
    beyond: ofCaller(isBeyond),
    // Finds out quickly that nothing is due, without a scan of the callers.
    anyOverdue: someWhere(isOverdue).limit(1),
    anyBeyond: someWhere(isBeyond).limit(1),
    callers: database
      .select({ id: caller.id })
      .from(caller)
      .where(
        and(
          gt(caller.id, sql.placeholder('after')),
          lte(caller.id, sql.placeholder('through')),
          or(
            exists(someWhere(isOfCaller, hasFailed, isOverdue)),
            exists(someWhere(isOfCaller, hasFailed, isBeyond)),
          ),
        ),
      )
      .orderBy(asc(caller.id))
      .limit(sql.placeholder('limit')),
  });
  const valuesOf = (range: DueRange) => ({ ...range, hasFailed: Number(range.hasFailed) });
  const idsBetween = async (range: DueRange, after: number, through: number, limit: number) => {
    const found = await callers.all({ ...valuesOf(range), after, through, limit });
    return found.map(({ id }) => id);
  };

  return {
    /** Up to `limit` callers with orders that are due, by id, starting after `after` and wrapping around. */
    callersWithDue: async (range: DueRange, after: number, limit: number): Promise<number[]> => {
      const isAnyDue = (await anyOverdue.get({ ...range })) ?? (await anyBeyond.get({ ...range }));
      if (isAnyDue === undefined) return [];
      const later = await idsBetween(range, after, Number.MAX_SAFE_INTEGER, limit);
      return [...later, ...(await idsBetween(range, 0, after, limit - later.length))];
    },
    /** The orders of a caller that are due, oldest due time first. */
    dueOf: async (range: DueRange, callerId: number, limit: number) => {
      const values = { ...valuesOf(range), callerId };
      const due = await overdue.all({ ...values, limit });
      due.push(...(await beyond.all({ ...values, limit: limit - due.length })));
      return due;
    },
  };
}
