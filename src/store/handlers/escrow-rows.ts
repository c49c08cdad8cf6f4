import {
  and,
  count,
  eq,
  exists,
  getTableColumns,
  gte,
  type InferSelectModel,
  inArray,
  isNull,
  or,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { InstructionKind } from '../../domain/escrow.ts';
import type { EscrowTerms } from '../../domain/escrow-terms.ts';
import type { ProviderIds } from '../../domain/party.ts';
import type { OrderEnd } from '../../domain/resolution.ts';
import { newestFirst } from '../engine/paging.ts';
import { caller, escrow, escrowInstruction, party } from '../engine/schema.ts';
import { choose, type Database, placeholders, prepare, prepareMapped } from '../engine/statement.ts';
import type { PageQuery } from '../paging.ts';
import type { OrderUpdate } from '../reconciliation-commands.ts';
import { prepareDue, prepareReleased } from './due-orders.ts';

const columns = { ...getTableColumns(escrow), caller: caller.name };

/** A row of an order, with the name of its caller. */
export type EscrowRow = Readonly<InferSelectModel<typeof escrow>> & { readonly caller: string };

type NewEscrowRow = Pick<
  EscrowRow,
  'escrowId' | 'callerId' | 'timestamp' | 'buyerPartyId' | 'sellerPartyId'
> &
  EscrowTerms & { readonly lookUpAtMs: number };

const isThis = eq(escrow.id, sql.placeholder('id'));
const isNotInReview = isNull(escrow.review);
/** RELEASED orders are looked up during a review, too: a payout can still change. */
const isLookedUp = sql`(${isNotInReview} OR ${escrow.state} = 'RELEASED')`;
/** With its type: PostgreSQL takes a parameter of a CASE for a text. */
const at = sql`CAST(${sql.placeholder('lookUpAtMs')} AS bigint)`;
/** Whether `isUnderWay` of escrow-books.ts is true and no other instance may take the order yet. */
const isBeingSent = (nowMs: unknown) => sql`(${escrow.lookUpAtMs} > ${nowMs} AND EXISTS (
  SELECT 1 FROM ${escrowInstruction} WHERE ${escrowInstruction.orderId} = ${escrow.id}
    AND ${escrowInstruction.status} = 'SENT'
    AND (${escrowInstruction.kind} <> 'FREEZE' OR ${escrow.nextActionUrl} IS NULL)))`;
const isOfKnownNotifications = eq(escrow.notificationCount, sql.placeholder('notificationCount'));

/** The rows of orders. Methods that write run inside an effect. */
export type EscrowRows = ReturnType<typeof createEscrowRows>;

export const createEscrowRows = (database: Database) => ({
  ...createReads(database),
  ...createChanges(database),
  ...createReviews(database),
  ...prepareDue(database),
  releasedOf: prepareReleased(database),
});

function createReads(database: Database) {
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
  return {
    find: (escrowId: string): Promise<EscrowRow | undefined> => byEscrowId.get({ escrowId }),
    byId: (id: number): Promise<EscrowRow | undefined> => byId.get({ id }),
    /** The id of the order with the provider's reference. */
    idOfReference: async (reference: string): Promise<number | undefined> => {
      const isOfReference = eq(escrow.reference, reference);
      const row = await database.select({ id: escrow.id }).from(escrow).where(isOfReference).limit(1).get();
      return row?.id;
    },
    /** The UNPAID or FROZEN order of a filing. */
    activeOf: (filingNo: string) => active.get({ filingNo }),
    /** The matching rows of a page, newest first, and one more if there is one. */
    list: (page: PageQuery, condition: SQL | undefined): Promise<EscrowRow[]> =>
      newestFirst(select(), escrow.id, page, condition),
    count: async (condition: SQL | undefined): Promise<number> => {
      const [counted] = await database.select({ rows: count() }).from(escrow).where(condition).all();
      return counted?.rows ?? 0;
    },
  };
}

function createChanges(database: Database) {
  const { insert, update, noticed, makeDue, leaveOpen } = prepare(database, {
    insert: insertion(database),
    update: updating(database),
    noticed: database
      .update(escrow)
      .set({
        lookUpAtMs: choose(
          isBeingSent(sql.placeholder('lookUpAtMs')),
          escrow.lookUpAtMs,
          choose(isLookedUp, at, sql`NULL`),
        ),
        notificationCount: sql`${escrow.notificationCount} + 1`,
      })
      .where(isThis),
    makeDue: database.update(escrow).set({ lookUpAtMs: at }).where(and(isThis, isNotInReview)),
    leaveOpen: database
      .update(escrow)
      .set({
        lookUpAtMs: choose(isOfKnownNotifications, at, sql.placeholder('nowMs')),
        failedAttempts: sql`${escrow.failedAttempts} + 1`,
      })
      .where(and(isThis, isLookedUp)),
  });
  return {
    /** Inserts an UNPAID order and returns its id. */
    insert: async (order: NewEscrowRow): Promise<number> => {
      const row = await insert.get({ ...order });
      if (row === undefined) throw new Error(`${order.escrowId} was not stored.`);
      return row.id;
    },
    /**
     * Applies the members of an update that are columns, if the order is still in state `from` and needs no review or is RELEASED.
     * Returns whether it did. The order is due at `nowMs` if it has had more notifications than the update knows.
     */
    update: async (
      row: EscrowRow,
      { nextAction, holdExpiresAtMs, ...given }: OrderUpdate,
      nowMs: number,
    ): Promise<boolean> =>
      (await update.run({
        ...{ id: row.id, from: given.from, to: given.to, nowMs },
        notificationCount: given.notificationCount,
        reference: given.reference ?? row.reference,
        holdExpiresAtS:
          holdExpiresAtMs === undefined ? row.holdExpiresAtS : Math.floor(holdExpiresAtMs / 1_000),
        nextActionUrl: nextAction?.url ?? null,
        nextActionUntilMs: nextAction?.untilMs ?? null,
        resetsAttempts: given.resetsAttempts ? 1 : 0,
        lookUpAtMs: given.lookUpAtMs ?? null,
      })) === 1,
    /** Makes an order due at a time, unless it needs a review. */
    makeDue: (id: number, lookUpAtMs: number) => makeDue.run({ id, lookUpAtMs }),
    /** Likewise for all orders that match. */
    makeAllDue: (which: SQL, lookUpAtMs: number) =>
      database.update(escrow).set({ lookUpAtMs }).where(and(which, isNotInReview)).run(),
    /** Likewise, or at `nowMs` if it has had more notifications. Counts a failed attempt. */
    leaveOpen: (id: number, unanswered: { lookUpAtMs: number; nowMs: number; notificationCount: number }) =>
      leaveOpen.run({ id, ...unanswered }),
    /** Counts a notification and makes the order due now, unless an instruction is under way. */
    noticed: (id: number, nowMs: number) => noticed.run({ id, lookUpAtMs: nowMs }),
    /**
     * Likewise for the orders since a time of a buyer with these provider ids that are RELEASED or have an open RELEASE, which may
     * end before the order is looked up.
     */
    noticedOfBuyer: (providerIds: ProviderIds, openedSinceMs: number, nowMs: number): Promise<void> =>
      noticeBuyer(database, providerIds, openedSinceMs, nowMs),
  };
}

const insertion = (database: Database) =>
  database
    .insert(escrow)
    .values({
      ...placeholders('escrowId', 'filingNo', 'callerId', 'type', 'amount', 'buyerId', 'sellerId'),
      ...placeholders('buyerPartyId', 'sellerPartyId', 'timestamp', 'lookUpAtMs'),
      state: 'UNPAID',
    })
    .returning({ id: escrow.id });

const updating = (database: Database) =>
  database
    .update(escrow)
    .set({
      ...placeholders('reference', 'holdExpiresAtS', 'nextActionUrl', 'nextActionUntilMs'),
      state: sql`${sql.placeholder('to')}`,
      failedAttempts: choose(sql`${sql.placeholder('resetsAttempts')} = 1`, 0, escrow.failedAttempts),
      // An accepted status of an open order says nothing of money that turns up after it ended without any.
      accepted: choose(
        sql`${escrow.accepted} = 1 AND (${escrow.state} = ${sql.placeholder('to')} OR ${sql.placeholder('to')} NOT IN ('CLOSED', 'REFUNDED'))`,
        sql`1`,
        sql`0`,
      ),
      lookUpAtMs: choose(isOfKnownNotifications, at, sql.placeholder('nowMs')),
    })
    .where(and(isThis, eq(escrow.state, sql.placeholder('from')), isLookedUp));

async function noticeBuyer(
  database: Database,
  providerIds: ProviderIds,
  openedSinceMs: number,
  nowMs: number,
): Promise<void> {
  const isNamed = Object.entries(providerIds).map(
    ([member, id]) => sql`${party.providerIds} ->> ${member} = ${id}`,
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
        .where(and(eq(escrowInstruction.orderId, escrow.id), eq(escrowInstruction.kind, kind), condition)),
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
  await database
    .update(escrow)
    .set({
      lookUpAtMs: choose(isBeingSent(nowMs), escrow.lookUpAtMs, sql`CAST(${nowMs} AS bigint)`),
      notificationCount,
    })
    .where(and(isReleased, inArray(escrow.buyerPartyId, buyers), isSince))
    .run();
}

/** Changes by people, or of orders that wait for one. They are rare, so nothing is prepared. */
function createReviews(database: Database) {
  return {
    /** Marks an order for review. */
    stop: async (id: number, { why, found }: NonNullable<OrderUpdate['review']>): Promise<void> => {
      // A RELEASED order is still looked up. It may be due already because of a notification.
      const lookUpAtMs = choose(sql`${escrow.state} = 'RELEASED'`, escrow.lookUpAtMs, sql`NULL`);
      const changes = {
        ...{ review: why, accepted: false, lookUpAtMs },
        foundStatus: found?.status ?? null,
        foundAmount: found?.amount ?? null,
        foundCurrency: found?.currency ?? null,
      };
      await database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    /** Lets an order that waits for a person go on. */
    decided: async (id: number, accepted: boolean, lookUpAtMs: number): Promise<void> => {
      // Counts as a notification, so that a lookup that is under way is followed by another one.
      const notificationCount = sql`${escrow.notificationCount} + 1`;
      const changes = { review: null, accepted, lookUpAtMs, notificationCount };
      await database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
    /** Sets the final state that an operator confirmed, whether or not the order needs a review. */
    end: async (id: number, state: OrderEnd, lookUpAtMs: number | null): Promise<void> => {
      // For RELEASED, the accepted status is the payout.
      const accepted = state === 'RELEASED' ? sql`${escrow.accepted}` : false;
      const ended = { state, review: null, accepted, failedAttempts: 0, lookUpAtMs };
      const changes = { ...ended, nextActionUrl: null, nextActionUntilMs: null };
      await database.update(escrow).set(changes).where(eq(escrow.id, id)).run();
    },
  };
}
