import {
  and,
  asc,
  count,
  desc,
  eq,
  exists,
  getTableColumns,
  gt,
  gte,
  type InferSelectModel,
  inArray,
  isNull,
  lt,
  lte,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { EscrowState, InstructionKind } from '../../domain/escrow.ts';
import type { EscrowTerms } from '../../domain/escrow-terms.ts';
import type { ProviderIds } from '../../domain/party.ts';
import type { OrderEnd } from '../../domain/resolution.ts';
import type { PageQuery } from '../paging.ts';
import type { Database } from './connection.ts';
import { rowsFor } from './paging.ts';
import { caller, escrow, escrowChange, escrowInstruction, party } from './schema.ts';
import { prepareMapped, prepareRaw } from './statement.ts';

const columns = { ...getTableColumns(escrow), caller: caller.name };

/** A row of an order, with the name of its caller. */
export type EscrowRow = Readonly<InferSelectModel<typeof escrow>> & { readonly caller: string };

/** An order to store. */
export type NewEscrowRow = Pick<
  EscrowRow,
  'escrowId' | 'callerId' | 'timestamp' | 'buyerPartyId' | 'sellerPartyId'
> &
  EscrowTerms & { readonly lookUpAtMs: number };

/** The values of an update. */
export interface UpdatedRow {
  readonly id: number;
  readonly from: EscrowState;
  readonly to: EscrowState;
  readonly reference: string | null;
  readonly holdExpiresAtS: number | null;
  readonly nextActionUrl: string | null;
  readonly nextActionUntilMs: number | null;
  readonly resetsAttempts: 0 | 1;
  /** The number of notifications at the time of the provider request. */
  readonly notificationCount: number;
  readonly lookUpAtMs: number | null;
  /** When the order is due if it has had more notifications since. */
  readonly nowMs: number;
}

/** Why an order needs a review. */
export type StoppedRow = Pick<EscrowRow, 'id' | 'foundStatus' | 'foundAmount' | 'foundCurrency'> & {
  readonly review: string;
};

/** The rows of orders. Methods that write run inside an effect. */
export interface EscrowRows {
  /** Inserts an UNPAID order and returns its id. */
  insert(order: NewEscrowRow): number;
  find(escrowId: string): EscrowRow | undefined;
  byId(id: number): EscrowRow | undefined;
  /** The id of the order with the provider's reference. */
  idOfReference(reference: string): number | undefined;
  /** The UNPAID or FROZEN order of a filing. */
  activeOf(filingNo: string): Pick<EscrowRow, 'escrowId' | 'callerId'> | undefined;
  /** The matching rows of a page, newest first, and one more if there is one. */
  list(conditions: readonly (SQL | undefined)[], page: PageQuery): EscrowRow[];
  /** The number of matching rows. */
  count(condition: SQL | undefined): number;
  /** Applies an update if the order is still in state `from` and needs no review or is RELEASED. Returns whether it did. */
  update(row: UpdatedRow): boolean;
  /** Marks an order for review. */
  stop(row: StoppedRow): void;
  /** Makes an order due at a time, unless it needs a review. */
  makeDue(id: number, lookUpAtMs: number): void;
  /** Likewise for all orders that match. */
  makeAllDue(which: SQL, lookUpAtMs: number): void;
  /** Likewise, unless it has had more notifications. Counts a failed attempt. */
  leaveOpen(id: number, lookUpAtMs: number, notificationCount: number): void;
  /** Counts a notification and makes the order due now. */
  noticed(id: number, nowMs: number): void;
  /**
   * Likewise for the orders since a time of a buyer with these provider ids that are RELEASED or have an open RELEASE, which may
   * end before the order is looked up.
   */
  noticedOfBuyer(providerIds: ProviderIds, openedSinceMs: number, nowMs: number): void;
  /** Lets an order that waits for a person go on. */
  decided(id: number, accepted: boolean, lookUpAtMs: number): void;
  /** Sets the final state that an operator confirmed, whether or not the order needs a review. */
  end(id: number, state: OrderEnd, lookUpAtMs: number | null): void;
  /** Up to `limit` callers with orders that are due, by id, starting after `after` and wrapping around. */
  callersWithDue(range: DueRange, after: number, limit: number): number[];
  /** The orders of a caller that are due, oldest due time first. */
  dueOf(range: DueRange, callerId: number, limit: number): string[];
  /** The RELEASED orders with id % `shares` = `share` and a history entry as RELEASED since a time. */
  releasedOf(share: number, shares: number, sinceMs: number): string[];
}

/** Selects due orders: due up to `nowMs`, or after `horizonMs`. */
export interface DueRange {
  readonly nowMs: number;
  readonly horizonMs: number;
  readonly hasFailed: boolean;
}

const isThis = eq(escrow.id, sql.placeholder('id'));
const isNotInReview = isNull(escrow.review);
/** RELEASED orders are looked up during a review, too: a payout can still change. */
const isLookedUp = sql`(${isNotInReview} OR ${escrow.state} = 'RELEASED')`;
const at = sql`${sql.placeholder('lookUpAtMs')}`;

/** The rows of a database. */
export function createEscrowRows(database: Database): EscrowRows {
  const select = () =>
    database.select(columns).from(escrow).innerJoin(caller, eq(caller.id, escrow.callerId)).$dynamic();
  const byEscrowId = prepareMapped(select().where(eq(escrow.escrowId, sql.placeholder('escrowId'))));
  const byId = prepareMapped(select().where(isThis));
  const active = prepareMapped(
    database
      .select({ escrowId: escrow.escrowId, callerId: escrow.callerId })
      .from(escrow)
      .where(
        and(
          eq(escrow.filingNo, sql.placeholder('filingNo')),
          // Literals, so that SQLite can use the partial index.
          sql`${escrow.state} IN ('UNPAID', 'FROZEN')`,
        ),
      ),
  );
  const insert = prepareRaw<{ id: number }>(
    database,
    database
      .insert(escrow)
      .values({
        escrowId: sql.placeholder('escrowId'),
        filingNo: sql.placeholder('filingNo'),
        callerId: sql.placeholder('callerId'),
        type: sql.placeholder('type'),
        amount: sql.placeholder('amount'),
        buyerId: sql.placeholder('buyerId'),
        sellerId: sql.placeholder('sellerId'),
        buyerPartyId: sql.placeholder('buyerPartyId'),
        sellerPartyId: sql.placeholder('sellerPartyId'),
        state: 'UNPAID',
        timestamp: sql.placeholder('timestamp'),
        lookUpAtMs: sql.placeholder('lookUpAtMs'),
      })
      .returning({ id: escrow.id }),
  );
  const update = prepareRaw(
    database,
    database
      .update(escrow)
      .set({
        state: sql`${sql.placeholder('to')}`,
        reference: sql`${sql.placeholder('reference')}`,
        holdExpiresAtS: sql`${sql.placeholder('holdExpiresAtS')}`,
        nextActionUrl: sql`${sql.placeholder('nextActionUrl')}`,
        nextActionUntilMs: sql`${sql.placeholder('nextActionUntilMs')}`,
        failedAttempts: sql`iif(${sql.placeholder('resetsAttempts')}, 0, ${escrow.failedAttempts})`,
        // An accepted status of an open order says nothing of money that turns up after it ended without any.
        accepted: sql`${escrow.accepted} AND (${escrow.state} = ${sql.placeholder('to')} OR ${sql.placeholder('to')} NOT IN ('CLOSED', 'REFUNDED'))`,
        lookUpAtMs: sql`iif(${escrow.notificationCount} = ${sql.placeholder('notificationCount')}, ${at}, ${sql.placeholder('nowMs')})`,
      })
      .where(and(isThis, eq(escrow.state, sql.placeholder('from')), isLookedUp)),
  );
  const noticed = prepareRaw(
    database,
    database
      .update(escrow)
      .set({
        lookUpAtMs: sql`iif(${isLookedUp}, ${at}, NULL)`,
        notificationCount: sql`${escrow.notificationCount} + 1`,
      })
      .where(isThis),
  );
  const makeDue = prepareRaw(
    database,
    database.update(escrow).set({ lookUpAtMs: at }).where(and(isThis, isNotInReview)),
  );
  const leaveOpen = prepareRaw(
    database,
    database
      .update(escrow)
      .set({
        lookUpAtMs: sql`iif(${escrow.notificationCount} = ${sql.placeholder('notificationCount')}, ${at}, ${escrow.lookUpAtMs})`,
        failedAttempts: sql`${escrow.failedAttempts} + 1`,
      })
      .where(and(isThis, isLookedUp)),
  );
  return {
    insert: (order) => {
      const row = insert.get({ ...order });
      if (row === undefined) throw new Error(`${order.escrowId} was not stored.`);
      return row.id;
    },
    find: (escrowId) => byEscrowId.get({ escrowId }),
    byId: (id) => byId.get({ id }),
    idOfReference: (reference) =>
      database.select({ id: escrow.id }).from(escrow).where(eq(escrow.reference, reference)).get()?.id,
    activeOf: (filingNo) => active.get({ filingNo }),
    list: (conditions, page) =>
      select()
        .where(and(...conditions, page.from === undefined ? undefined : lt(escrow.id, page.from)))
        .orderBy(desc(escrow.id))
        .limit(rowsFor(page))
        .all(),
    count: (condition) => {
      const [counted] = database.select({ rows: count() }).from(escrow).where(condition).all();
      return counted?.rows ?? 0;
    },
    update: (row) => update.run({ ...row }) === 1,
    makeDue: (id, lookUpAtMs) => {
      makeDue.run({ id, lookUpAtMs });
    },
    makeAllDue: (which, lookUpAtMs) => {
      database.update(escrow).set({ lookUpAtMs }).where(and(which, isNotInReview)).run();
    },
    leaveOpen: (id, lookUpAtMs, notificationCount) => {
      leaveOpen.run({ id, lookUpAtMs, notificationCount });
    },
    stop: ({ id, ...found }) => {
      // A RELEASED order is still looked up. It may be due already because of a notification.
      const lookUpAtMs = sql`iif(${escrow.state} = 'RELEASED', ${escrow.lookUpAtMs}, NULL)`;
      const changes = { ...found, accepted: false, lookUpAtMs };
      database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    noticed: (id, nowMs) => {
      noticed.run({ id, lookUpAtMs: nowMs });
    },
    noticedOfBuyer: (names, openedSinceMs, nowMs) => {
      const isNamed = Object.entries(names).map(
        ([member, name]) => sql`json_extract(${party.providerIds}, ${`$."${member}"`}) = ${name}`,
      );
      const buyers = database
        .select({ id: party.id })
        .from(party)
        .where(and(eq(party.role, 'BUYER'), ...isNamed));
      const hasInstruction = (kind: InstructionKind, condition: SQL) =>
        exists(
          database
            .select({ id: escrowInstruction.id })
            .from(escrowInstruction)
            .where(
              and(eq(escrowInstruction.orderId, escrow.id), eq(escrowInstruction.kind, kind), condition),
            ),
        );
      const isSince = hasInstruction('FREEZE', gte(escrowInstruction.preparedAtMs, openedSinceMs));
      const isBeingReleased = hasInstruction(
        'RELEASE',
        inArray(escrowInstruction.status, ['PREPARED', 'SENT', 'UNKNOWN']),
      );
      const isReleased = or(
        eq(escrow.state, 'RELEASED'),
        and(eq(escrow.state, 'FROZEN'), isNotInReview, isBeingReleased),
      );
      const notificationCount = sql`${escrow.notificationCount} + 1`;
      database
        .update(escrow)
        .set({ lookUpAtMs: nowMs, notificationCount })
        .where(and(isReleased, inArray(escrow.buyerPartyId, buyers), isSince))
        .run();
    },
    decided: (id, accepted, lookUpAtMs) => {
      // Counts as a notification, so that a lookup that is under way is followed by another one.
      const notificationCount = sql`${escrow.notificationCount} + 1`;
      const changes = { review: null, accepted, lookUpAtMs, notificationCount };
      database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    end: (id, state, lookUpAtMs) => {
      // For RELEASED, the accepted status is the payout.
      const accepted = state === 'RELEASED' ? sql`${escrow.accepted}` : false;
      const ended = { state, review: null, accepted, failedAttempts: 0, lookUpAtMs };
      const changes = { ...ended, nextActionUrl: null, nextActionUntilMs: null };
      database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    ...prepareDue(database),
    releasedOf: prepareReleased(database),
  };
}

/** Reads rows by id, so that orders of other shares are not scanned. */
function prepareReleased(database: Database): EscrowRows['releasedOf'] {
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
  const released = prepareRaw<{ escrow_id: string }>(
    database,
    database
      .select({ escrowId: escrow.escrowId })
      .from(escrow)
      .where(and(isThis, sql`${escrow.state} = 'RELEASED'`, exists(isRecent))),
  );
  return (share, shares, sinceMs) => {
    const [last, sinceS] = [lastId.get() ?? 0, Math.ceil(sinceMs / 1_000)];
    const found: string[] = [];
    for (let id = share; id <= last; id += shares) {
      const row = released.get({ id, sinceS });
      if (row !== undefined) found.push(row.escrow_id);
    }
    return found;
  };
}

/** Reads due orders by ranges of an index, so that orders that are not due are not scanned. */
function prepareDue(database: Database): Pick<EscrowRows, 'callersWithDue' | 'dueOf'> {
  const isOverdue = lte(escrow.lookUpAtMs, sql.placeholder('nowMs'));
  const isBeyond = gt(escrow.lookUpAtMs, sql.placeholder('horizonMs'));
  const hasFailed = sql`(${escrow.failedAttempts} > 0) = ${sql.placeholder('hasFailed')}`;
  const select = () => database.select({ escrowId: escrow.escrowId }).from(escrow).$dynamic();
  const someWhere = (...conditions: SQL[]) => select().where(and(...conditions));
  const ofCaller = (range: SQL) =>
    prepareRaw<{ escrow_id: string }>(
      database,
      someWhere(eq(escrow.callerId, sql.placeholder('callerId')), hasFailed, range)
        .orderBy(asc(escrow.lookUpAtMs))
        .limit(sql.placeholder('limit')),
    );
  const [overdue, beyond] = [ofCaller(isOverdue), ofCaller(isBeyond)];
  // Finds out quickly that nothing is due, without a scan of the callers.
  const anyWhere = (range: SQL) => prepareRaw<{ escrow_id: string }>(database, someWhere(range).limit(1));
  const [anyOverdue, anyBeyond] = [anyWhere(isOverdue), anyWhere(isBeyond)];
  const isOfCaller = eq(escrow.callerId, caller.id);
  const callers = prepareRaw<{ id: number }>(
    database,
    database
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
  );
  const valuesOf = (range: DueRange) => ({ ...range, hasFailed: Number(range.hasFailed) });
  const idsBetween = (range: DueRange, after: number, through: number, limit: number) =>
    callers.all({ ...valuesOf(range), after, through, limit }).map(({ id }) => id);

  return {
    callersWithDue: (range, after, limit) => {
      if ((anyOverdue.get({ ...range }) ?? anyBeyond.get({ ...range })) === undefined) return [];
      const later = idsBetween(range, after, Number.MAX_SAFE_INTEGER, limit);
      return [...later, ...idsBetween(range, 0, after, limit - later.length)];
    },
    dueOf: (range, callerId, limit) => {
      const values = { ...valuesOf(range), callerId };
      const due = overdue.all({ ...values, limit });
      due.push(...beyond.all({ ...values, limit: limit - due.length }));
      return due.map(({ escrow_id }) => escrow_id);
    },
  };
}
