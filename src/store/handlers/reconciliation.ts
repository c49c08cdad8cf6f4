import { and, asc, eq, inArray, isNotNull, lt, or, sql } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import { isByOperator, stateConflict } from '../../domain/escrow.ts';
import { instructionOutcomes } from '../../domain/payment.ts';
import { type Decision, errorToClose, planDecision, planEnd } from '../../domain/resolution.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { pageOf } from '../engine/paging.ts';
import { deployment, escrow, providerNotification } from '../engine/schema.ts';
import { type Database, equalsWithoutIndex, placeholdersFor, prepare } from '../engine/statement.ts';
import {
  type CaseSelection,
  type DueOrder,
  type EscrowCase,
  notificationRetentionS,
  type ReconciliationCommands,
} from '../reconciliation-commands.ts';
import type { RecordAudit } from './audit-log.ts';
import { type EscrowBooks, foundOf, isUnderWay, resolvable } from './escrow-books.ts';
import type { EscrowRow } from './escrow-rows.ts';
import type { Parts } from './parts.ts';

/** The review of an order that an operator stopped. The audit entry has the operator's reason. */
const stoppedByOperator = 'An operator stopped it.';

/** The provider of a database that names none. */
const firstProvider = 'simulated';

/** Handlers of reconciliation, and of orders for operators. */
export const createReconciliationHandlers = (
  { database, recordAudit }: Parts,
  books: EscrowBooks,
): Handlers<keyof ReconciliationCommands> => ({
  ...createCaseHandlers(books),
  UpdateOrder: createUpdate(books),
  UseProvider: createProviderChange(database, books),
  TakeNotification: createNotification(database, books),
  ...createOperatorHandlers(books, recordAudit),
});

/** Handlers that find orders, and that record what was sent. */
function createCaseHandlers(
  books: EscrowBooks,
): Handlers<
  | 'FindInstruction'
  | 'RecordSent'
  | 'RecordUnanswered'
  | 'FindCase'
  | 'ListCases'
  | 'ResumeOpen'
  | 'ListDue'
  | 'ListReleased'
> {
  const { rows, instructions, toCase, requireRow } = books;
  return {
    FindInstruction: reads(({ instructionId }) => books.findInstruction(instructionId)),
    RecordSent: writes(async ({ instructionId, status, expectedLookUpAtMs, lookUpAtMs }) => {
      const instruction = await instructions.find(instructionId);
      const row = instruction && (await rows.byId(instruction.orderId));
      if (row === undefined) throw new Error(`There is no instruction ${instructionId}.`);
      const isTaken = status === 'SENT' && row.lookUpAtMs !== (expectedLookUpAtMs ?? null);
      if (instruction?.status !== status || isTaken || row.review !== null) return false;
      await instructions.move(instructionId, 'SENT');
      await rows.makeDue(row.id, lookUpAtMs);
      return true;
    }),
    RecordUnanswered: writes(async ({ escrowId, expectedLookUpAtMs, ...unanswered }) => {
      const row = await requireRow(escrowId);
      if (await isElsewhere(books, row, expectedLookUpAtMs)) return false;
      await rows.leaveOpen(row.id, unanswered);
      await instructions.leaveOpen(row.id);
      return true;
    }),
    FindCase: reads(async ({ escrowId }) => {
      const row = await rows.find(escrowId);
      return row && toCase(row);
    }),
    ResumeOpen: writes(async ({ nowMs }) => {
      await rows.makeAllDue(inArray(escrow.id, instructions.ordersWithOpen()), nowMs);
      return undefined;
    }),
    ListDue: reads(async ({ after, callers, perCaller, ...range }) => {
      const due: DueOrder[] = [];
      for (const callerId of await rows.callersWithDue(range, after, callers)) {
        const ofCaller = await rows.dueOf(range, callerId, perCaller);
        due.push(...ofCaller.map((order) => ({ ...order, callerId })));
      }
      return due;
    }),
    ListReleased: reads(({ share, shares, sinceMs }) => rows.releasedOf(share, shares, sinceMs)),
    ListCases: reads(async ({ selection, page }) =>
      pageOf(await rows.list(page, selectedBy(selection)), page, toCase),
    ),
  };
}

/** Whether another instance has sent an instruction of an order since it was due at this time. */
const isElsewhere = async (
  { instructions }: EscrowBooks,
  row: EscrowRow,
  expectedLookUpAtMs: number | undefined,
): Promise<boolean> =>
  row.lookUpAtMs !== (expectedLookUpAtMs ?? null) && isUnderWay(row, await instructions.openOf(row.id));

/** The handler that applies an update to an order, unless the order has changed meanwhile. */
function createUpdate(books: EscrowBooks): Handlers['UpdateOrder'] {
  const { rows, instructions, history, toCase, requireRow } = books;
  return writes(async ({ update, at }) => {
    const { from, to, ended, prepared, review, afterPayout } = update;
    const row = await requireRow(update.escrowId);
    const openBefore = await instructions.openOf(row.id);
    const open = new Map(openBefore.map(({ instructionId, kind }) => [instructionId, kind]));
    // What is left of these stays open.
    if (ended.some(({ instructionId }) => !open.delete(instructionId))) return undefined;
    // Cancelled since the provider request: the hold goes back.
    if (from === 'UNPAID' && to === 'FROZEN' && [...open.values()].includes('CANCEL')) return undefined;
    if (await isElsewhere(books, row, update.expectedLookUpAtMs)) return undefined;
    // Another instance that leads now has looked it up, too.
    if (afterPayout !== undefined && (await history.of(row.id)).length !== update.expectedChanges)
      return undefined;
    if (!(await rows.update(row, update, at.atMs))) return undefined;
    for (const { instructionId, status, reason } of ended) {
      await instructions.move(instructionId, status, reason);
    }
    if (prepared !== undefined) {
      await instructions.prepare(row.id, prepared.kind, prepared.instructionId, at.atMs);
    }
    if (to !== from) await books.moved(row, to, at);
    if (afterPayout !== undefined) await books.payoutChanged(row, to, at, afterPayout);
    if (review !== undefined) await books.stop(row, review, to, at.atMs);
    return toCase(await requireRow(update.escrowId));
  });
}

/** The handler that changes the payment provider, which needs that no order is under way. */
function createProviderChange(
  database: Database,
  { rows, instructions }: EscrowBooks,
): Handlers['UseProvider'] {
  /** Orders that are due or need a review. */
  const isUnderWay = or(
    inArray(escrow.state, ['UNPAID', 'FROZEN']),
    inArray(escrow.id, instructions.ordersWithOpen()),
    isNotNull(escrow.lookUpAtMs),
    isNotNull(escrow.review),
  );

  return writes(async ({ name }) => {
    const { provider } = (await database.select().from(deployment).limit(1).get()) ?? {};
    if (provider === name) return undefined;
    const before = provider ?? firstProvider;
    const open = before === name ? 0 : await rows.count(isUnderWay);
    if (open > 0)
      throw stateConflict(
        `Orders are open at the provider ${before}: ${open}. Let them end there, or set ARTSEAL_PAYMENT_PROVIDER to ${before}.`,
      );
    await database.update(deployment).set({ provider: name }).run();
    return undefined;
  });
}

function createNotification(
  database: Database,
  { rows, instructions }: EscrowBooks,
): Handlers['TakeNotification'] {
  const isNewNotification = createNotificationMemory(database);
  return writes(async ({ eventId, about, nowMs }) => {
    if (!(await isNewNotification(eventId, nowMs))) return false;
    if ('buyer' in about) {
      await rows.noticedOfBuyer(about.buyer, about.openedSinceMs, nowMs);
      return true;
    }
    const orderId =
      'holdId' in about
        ? (await instructions.find(about.holdId))?.orderId
        : await rows.idOfReference(about.reference);
    if (orderId !== undefined) await rows.noticed(orderId, nowMs);
    return true;
  });
}

/** Expired notifications deleted per new one. */
const sweptPerNotification = 2;

/** Remembers notifications of the provider. The function returns whether a notification is new. It runs inside an effect. */
function createNotificationMemory(database: Database): (eventId: string, nowMs: number) => Promise<boolean> {
  const isForgotten = lt(providerNotification.receivedAtS, sql.placeholder('forgottenS'));
  const forgotten = database
    .select({ eventId: providerNotification.eventId })
    .from(providerNotification)
    .where(isForgotten)
    .orderBy(asc(providerNotification.receivedAtS))
    .limit(sweptPerNotification);
  const { remember, sweep } = prepare(database, {
    remember: database
      .insert(providerNotification)
      .values(placeholdersFor(providerNotification))
      .onConflictDoUpdate({
        target: providerNotification.eventId,
        set: { receivedAtS: sql`excluded.received_at_s` },
        setWhere: isForgotten,
      }),
    sweep: database.delete(providerNotification).where(inArray(providerNotification.eventId, forgotten)),
  });
  return async (eventId, nowMs) => {
    const receivedAtS = Math.floor(nowMs / 1000);
    const forgottenS = receivedAtS - notificationRetentionS;
    const isNew = (await remember.run({ eventId, receivedAtS, forgottenS })) === 1;
    await sweep.run({ forgottenS });
    return isNew;
  };
}

/** Handlers of what operators decide. */
function createOperatorHandlers(
  books: EscrowBooks,
  recordAudit: RecordAudit,
): Handlers<'Decide' | 'CloseOrder' | 'EndOrder'> {
  const { rows, instructions, history, toCase, requireRow, resolutionOf } = books;

  /** Records a decision in the audit log and returns the new case. */
  async function noteDecision(
    by: Actor,
    before: EscrowRow,
    decision: Decision | 'CLOSE' | 'END',
    evidence?: string,
  ): Promise<EscrowCase> {
    const { escrowId, state, review } = before;
    const decided = await toCase(await requireRow(escrowId));
    const underWay = decided.open.map(({ kind, status }) => `${kind} ${status}`);
    await recordAudit(by, 'escrow resolve', escrowId, {
      before: { state, review, found: foundOf(before) },
      after: { state: decided.order.state, decision, evidence, underWay },
    });
    return decided;
  }

  /** Whether an operator confirmed that the money of an order was paid, out or back. */
  const isPaidByOperator = async ({ id, state }: EscrowRow): Promise<boolean> =>
    state !== 'CLOSED' && isByOperator(await history.of(id));

  return {
    Decide: writes(async ({ by, escrowId, decision, instructionId, nowMs }) => {
      const row = await requireRow(escrowId);
      const plan = planDecision(decision, {
        ...resolvable(row, await resolutionOf(row.id)),
        found: foundOf(row),
        hasPaid: (await instructions.hasPaid(row.id)) || (await isPaidByOperator(row)),
        hasDeclinedReturn: await instructions.hasDeclinedReturn(row.id),
        hasOpen: (await instructions.lastOpenOf(row.id)) !== undefined,
      });
      if (plan.kind === 'CONFLICT') throw stateConflict(plan.why);
      if (plan.kind === 'STOP') {
        await books.stop(row, { why: stoppedByOperator, found: undefined }, row.state, nowMs);
      } else {
        await rows.decided(row.id, decision === 'ACCEPT', nowMs);
      }
      if (plan.kind === 'PREPARE') await instructions.prepare(row.id, plan.instruction, instructionId, nowMs);
      return noteDecision(by, row, decision);
    }),
    CloseOrder: writes(async ({ by, escrowId, at }) => {
      const row = await requireRow(escrowId);
      // A status from before a decision or a newer request is out of date.
      const found = row.review === null ? undefined : foundOf(row);
      const apiError = errorToClose({ escrowId, state: row.state, found });
      if (apiError !== undefined) throw stateConflict(apiError);
      // If the platform cancelled the order, it is closed as requested.
      for (const { instructionId, kind } of await instructions.openOf(row.id))
        await instructions.move(instructionId, instructionOutcomes[kind].VOID);
      await rows.end(row.id, 'CLOSED', at.atMs);
      await books.moved(row, 'CLOSED', at, true);
      return noteDecision(by, row, 'CLOSE');
    }),
    EndOrder: writes(async ({ by, escrowId, end, evidence, at }) => {
      const row = await requireRow(escrowId);
      const open = await instructions.openOf(row.id);
      const plan = planEnd(end, { escrowId, state: row.state, isStopped: row.review !== null, open });
      if (plan.kind === 'CONFLICT') throw stateConflict(plan.why);
      for (const { instructionId, status, reason } of plan.ended)
        await instructions.move(instructionId, status, reason);
      const moves = row.state !== end;
      // One more lookup finds out whether the provider contradicts the operator.
      await rows.end(row.id, end, moves ? at.atMs : null);
      if (moves) await books.moved(row, end, at, true);
      return noteDecision(by, row, 'END', evidence);
    }),
  };
}

const selectedBy = ({ state, needsReview, escrowId }: CaseSelection) => {
  const equals = needsReview ? equalsWithoutIndex : eq;
  return and(
    state === undefined ? undefined : equals(escrow.state, state),
    needsReview ? isNotNull(escrow.review) : undefined,
    escrowId === undefined ? undefined : eq(escrow.escrowId, escrowId),
  );
};
