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
import { prepareRaw } from './statement.ts';

const columns = { ...getTableColumns(escrow), caller: caller.name };

/** An order as its table has it, with the name of its caller. */
export type EscrowRow = Readonly<InferSelectModel<typeof escrow>> & { readonly caller: string };

/** An order to store. */
export type NewEscrowRow = Pick<
  EscrowRow,
  'escrowId' | 'callerId' | 'timestamp' | 'buyerPartyId' | 'sellerPartyId'
> &
  EscrowTerms & { readonly lookUpAtMs: number };

/** What an update writes into the row of an order. */
export interface UpdatedRow {
  readonly id: number;
  readonly from: EscrowState;
  readonly to: EscrowState;
  readonly reference: string | null;
  readonly holdExpiresAtS: number | null;
  readonly nextActionUrl: string | null;
  readonly nextActionUntilMs: number | null;
  readonly resetsAttempts: 0 | 1;
  /** Notifications that had come when the provider was asked. */
  readonly notificationCount: number;
  readonly lookUpAtMs: number | null;
  /** When to look again if more notifications have come. */
  readonly nowMs: number;
}

/** What stops an order for a person. */
export type StoppedRow = Pick<EscrowRow, 'id' | 'foundStatus' | 'foundAmount' | 'foundCurrency'> & {
  readonly review: string;
};

/** The rows of orders. All verbs that write run inside the effect that they belong to. */
export interface EscrowRows {
  /** Stores an UNPAID order; its id. */
  insert(order: NewEscrowRow): number;
  find(escrowId: string): EscrowRow | undefined;
  byId(id: number): EscrowRow | undefined;
  /** The id of the order that the provider knows by a name of its own. */
  idOfReference(reference: string): number | undefined;
  /** The order of a filing that is UNPAID or FROZEN. */
  activeOf(filingNo: string): Pick<EscrowRow, 'escrowId' | 'callerId'> | undefined;
  /** The rows of a page that all conditions hold for, newest first; one more than it shows, if there is one. */
  list(conditions: readonly (SQL | undefined)[], page: PageQuery): EscrowRow[];
  /** How many rows a condition holds for. */
  count(condition: SQL | undefined): number;
  /** Writes an update down, if the order is still in the state that it leads from, and waits for no person or is RELEASED. */
  update(row: UpdatedRow): boolean;
  /** Stops an order for a person. */
  stop(row: StoppedRow): void;
  /** Makes an order due at a time, unless it waits for a person. */
  makeDue(id: number, lookUpAtMs: number): void;
  /** The same for all orders of a subquery. */
  makeAllDue(which: SQL, lookUpAtMs: number): void;
  /** The same, unless more notifications have come, and one attempt more was not answered. */
  leaveOpen(id: number, lookUpAtMs: number, notificationCount: number): void;
  /** Makes an order due now, for one notification more. */
  noticed(id: number, nowMs: number): void;
  /**
   * The same for the orders of a buyer who is registered with these names, opened since a time: those that are RELEASED, and
   * those whose RELEASE is open, which may be RELEASED before they are asked about.
   */
  noticedOfBuyer(providerIds: ProviderIds, openedSinceMs: number, nowMs: number): void;
  /** Lets an order that waits for a person go on. */
  decided(id: number, accepted: boolean, lookUpAtMs: number): void;
  /** Brings an order to its end, by a person's word, whether or not it waits for a person. */
  end(id: number, state: OrderEnd, lookUpAtMs: number | null): void;
  /** The callers that have orders due, so many at most, by their ids: those behind `after`, and then from the first on. */
  callersWithDue(range: DueRange, after: number, limit: number): number[];
  /** The orders of a caller that are due, longest due first. */
  dueOf(range: DueRange, callerId: number, limit: number): string[];
  /** The RELEASED orders whose id divided by `shares` leaves `share`, and that came to be so, or had news, since then. */
  releasedOf(share: number, shares: number, sinceMs: number): string[];
}

/** Which orders are due: up to a time, or later than another one. */
export interface DueRange {
  readonly nowMs: number;
  readonly horizonMs: number;
  readonly hasFailed: boolean;
}

const isThis = eq(escrow.id, sql.placeholder('id'));
const isNotInReview = isNull(escrow.review);
/** What becomes of money after its release is asked for even where a person has not decided yet. */
const isLookedUp = sql`(${isNotInReview} OR ${escrow.state} = 'RELEASED')`;
const at = sql`${sql.placeholder('lookUpAtMs')}`;

/** The rows of a database. */
export function createEscrowRows(database: Database): EscrowRows {
  const select = () =>
    database.select(columns).from(escrow).innerJoin(caller, eq(caller.id, escrow.callerId)).$dynamic();
  const byEscrowId = select()
    .where(eq(escrow.escrowId, sql.placeholder('escrowId')))
    .prepare();
  const byId = select().where(isThis).prepare();
  const active = database
    .select({ escrowId: escrow.escrowId, callerId: escrow.callerId })
    .from(escrow)
    .where(
      and(
        eq(escrow.filingNo, sql.placeholder('filingNo')),
        // Literals, so that SQLite sees that the partial index answers this.
        sql`${escrow.state} IN ('UNPAID', 'FROZEN')`,
      ),
    )
    .prepare();
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
        // What was accepted of an open order does not speak for money that turns up once that has ended without any.
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
      // Only that of a RELEASED order, which goes on being asked about, may be due already: for news that came meanwhile.
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
      // As a notification does, it has an answer that is under way followed by another question.
      const notificationCount = sql`${escrow.notificationCount} + 1`;
      const changes = { review: null, accepted, lookUpAtMs, notificationCount };
      database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    end: (id, state, lookUpAtMs) => {
      // What was accepted is what was paid out, if it was.
      const accepted = state === 'RELEASED' ? sql`${escrow.accepted}` : false;
      const ended = { state, review: null, accepted, failedAttempts: 0, lookUpAtMs };
      const changes = { ...ended, nextActionUrl: null, nextActionUntilMs: null };
      database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    ...prepareDue(database),
    releasedOf: prepareReleased(database),
  };
}

/** Reads single rows by their ids, so that the orders of other shares, and those of years ago, are never sorted through. */
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

/** Looks for due orders in one range of an index at a time, so that those that are not due are never read. */
function prepareDue(database: Database): Pick<EscrowRows, 'callersWithDue' | 'dueOf'> {
  const isOverdue = lte(escrow.lookUpAtMs, sql.placeholder('nowMs'));
  const isBehind = gt(escrow.lookUpAtMs, sql.placeholder('horizonMs'));
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
  const [overdue, behind] = [ofCaller(isOverdue), ofCaller(isBehind)];
  // Where nothing is due at all, that is found without a look at each caller.
  const anyWhere = (range: SQL) => prepareRaw<{ escrow_id: string }>(database, someWhere(range).limit(1));
  const [anyOverdue, anyBehind] = [anyWhere(isOverdue), anyWhere(isBehind)];
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
            exists(someWhere(isOfCaller, hasFailed, isBehind)),
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
      if ((anyOverdue.get({ ...range }) ?? anyBehind.get({ ...range })) === undefined) return [];
      const later = idsBetween(range, after, Number.MAX_SAFE_INTEGER, limit);
      return [...later, ...idsBetween(range, 0, after, limit - later.length)];
    },
    dueOf: (range, callerId, limit) => {
      const values = { ...valuesOf(range), callerId };
      const due = overdue.all({ ...values, limit });
      due.push(...behind.all({ ...values, limit: limit - due.length }));
      return due.map(({ escrow_id }) => escrow_id);
    },
  };
}
