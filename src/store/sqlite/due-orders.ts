import { and, asc, eq, exists, gt, gte, lte, or, type SQL, sql } from 'drizzle-orm';
import { caller, escrow, escrowChange } from './schema.ts';
import { type Database, named, prepare } from './statement.ts';

/** Selects due orders: due up to `nowMs`, or after `horizonMs`. */
interface DueRange {
  readonly nowMs: number;
  readonly horizonMs: number;
  readonly hasFailed: boolean;
}

/** Finds the orders that reconciliation looks up. */
export const createDueOrders = (database: Database) => ({
  ...prepareDue(database),
  /** The RELEASED orders with id % `shares` = `share` and a history entry as RELEASED since a time. */
  releasedOf: prepareReleased(database),
});

/** Reads rows by id, so that orders of other shares are not scanned. */
function prepareReleased(database: Database) {
  const lastId = database.$client.prepare<[], number>('SELECT coalesce(max(id), 0) FROM escrow').pluck();
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
  const { released } = prepare(database, {
    released: database
      .select(named({ escrowId: escrow.escrowId }))
      .from(escrow)
      .where(and(eq(escrow.id, sql.placeholder('id')), sql`${escrow.state} = 'RELEASED'`, exists(isRecent))),
  });
  return (share: number, shares: number, sinceMs: number): string[] => {
    const [last, sinceS] = [lastId.get() ?? 0, Math.ceil(sinceMs / 1_000)];
    const found: string[] = [];
    for (let id = share; id <= last; id += shares) {
      const row = released.get({ id, sinceS });
      if (row !== undefined) found.push(row.escrowId);
    }
    return found;
  };
}

/** Reads due orders by ranges of an index, so that orders that are not due are not scanned. */
function prepareDue(database: Database) {
  const isOverdue = lte(escrow.lookUpAtMs, sql.placeholder('nowMs'));
  const isBeyond = gt(escrow.lookUpAtMs, sql.placeholder('horizonMs'));
  const hasFailed = sql`(${escrow.failedAttempts} > 0) = ${sql.placeholder('hasFailed')}`;
  const select = () =>
    database
      .select(named({ escrowId: escrow.escrowId }))
      .from(escrow)
      .$dynamic();
  const someWhere = (...conditions: SQL[]) => select().where(and(...conditions));
  const ofCaller = (range: SQL) =>
    someWhere(eq(escrow.callerId, sql.placeholder('callerId')), hasFailed, range)
      .orderBy(asc(escrow.lookUpAtMs))
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
  const idsBetween = (range: DueRange, after: number, through: number, limit: number) =>
    callers.all({ ...valuesOf(range), after, through, limit }).map(({ id }) => id);

  return {
    /** Up to `limit` callers with orders that are due, by id, starting after `after` and wrapping around. */
    callersWithDue: (range: DueRange, after: number, limit: number): number[] => {
      if ((anyOverdue.get({ ...range }) ?? anyBeyond.get({ ...range })) === undefined) return [];
      const later = idsBetween(range, after, Number.MAX_SAFE_INTEGER, limit);
      return [...later, ...idsBetween(range, 0, after, limit - later.length)];
    },
    /** The orders of a caller that are due, oldest due time first. */
    dueOf: (range: DueRange, callerId: number, limit: number): string[] => {
      const values = { ...valuesOf(range), callerId };
      const due = overdue.all({ ...values, limit });
      due.push(...beyond.all({ ...values, limit: limit - due.length }));
      return due.map(({ escrowId }) => escrowId);
    },
  };
}
