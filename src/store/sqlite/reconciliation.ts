import { and, eq, inArray, isNotNull, lt, or, sql } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import { isByOperator, rejectChangeOfProvider, stateConflict } from '../../domain/escrow.ts';
import { instructionOutcomes } from '../../domain/payment.ts';
import { type Decision, errorToClose, planDecision, planEnd } from '../../domain/resolution.ts';
import {
  type CaseSelection,
  type EscrowCase,
  notificationRetentionS,
  type ReconciliationCommands,
} from '../reconciliation-commands.ts';
import type { RecordAudit } from './audit-log.ts';
import { type EscrowBooks, foundOf, resolvable } from './escrow-books.ts';
import type { EscrowRow } from './escrow-rows.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { pageOf } from './paging.ts';
import type { Parts } from './parts.ts';
import { deployment, escrow, providerNotification } from './schema.ts';
import { type Database, equalsWithoutIndex, placeholdersFor, prepare } from './statement.ts';

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
    RecordSent: writes(({ instructionId, lookUpAtMs }) => {
      const orderId = instructions.find(instructionId)?.orderId;
      if (orderId === undefined || !instructions.move(instructionId, 'SENT')) {
        throw new Error(`${instructionId} is no open instruction.`);
      }
      rows.makeDue(orderId, lookUpAtMs);
      return undefined;
    }),
    RecordUnanswered: writes(({ escrowId, lookUpAtMs, notificationCount }) => {
      const row = requireRow(escrowId);
      rows.leaveOpen(row.id, lookUpAtMs, notificationCount);
      instructions.leaveOpen(row.id);
      return undefined;
    }),
    FindCase: reads(({ escrowId }) => {
      const row = rows.find(escrowId);
      return row && toCase(row);
    }),
    ResumeOpen: writes(({ nowMs }) => {
      rows.makeAllDue(inArray(escrow.id, instructions.ordersWithOpen()), nowMs);
      return undefined;
    }),
    ListDue: reads(({ after, callers, perCaller, ...range }) => {
      const dueCallers = rows.callersWithDue(range, after, callers);
      return dueCallers.flatMap((callerId) =>
        rows.dueOf(range, callerId, perCaller).map((escrowId) => ({ escrowId, callerId })),
      );
    }),
    ListReleased: reads(({ share, shares, sinceMs }) => rows.releasedOf(share, shares, sinceMs)),
    ListCases: reads(({ selection, page }) => pageOf(rows.list(page, selectedBy(selection)), page, toCase)),
  };
}

/** The handler that applies an update to an order, unless the order has changed meanwhile. */
function createUpdate(books: EscrowBooks): Handlers['UpdateOrder'] {
  const { rows, instructions, toCase, requireRow } = books;
  return writes(({ update, at }) => {
    const { from, to, ended, prepared, review, afterPayout } = update;
    const row = requireRow(update.escrowId);
    const open = new Map(instructions.openOf(row.id).map(({ instructionId, kind }) => [instructionId, kind]));
    // What is left of these stays open.
    if (ended.some(({ instructionId }) => !open.delete(instructionId))) return undefined;
    // Cancelled since the provider request: the hold goes back.
    if (from === 'UNPAID' && to === 'FROZEN' && [...open.values()].includes('CANCEL')) return undefined;
    if (!rows.update(row, update, at.atMs)) return undefined;
    for (const { instructionId, status, reason } of ended) {
      instructions.move(instructionId, status, reason);
    }
    if (prepared !== undefined) {
      instructions.prepare(row.id, prepared.kind, prepared.instructionId, at.atMs);
    }
    if (to !== from) books.moved(row, to, at);
    if (afterPayout !== undefined) books.payoutChanged(row, to, at, afterPayout);
    if (review !== undefined) books.stop(row, review, to, at.atMs);
    return toCase(requireRow(update.escrowId));
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

  return writes(({ name }) => {
    const { provider } = database.select().from(deployment).get() ?? {};
    if (provider === name) return undefined;
    const before = provider ?? firstProvider;
    if (before !== name) rejectChangeOfProvider(before, rows.count(isUnderWay));
    database.update(deployment).set({ provider: name }).run();
    return undefined;
  });
}

/** The handler of notifications of the provider. */
function createNotification(
  database: Database,
  { rows, instructions }: EscrowBooks,
): Handlers['TakeNotification'] {
  const isNewNotification = createNotificationMemory(database);
  return writes(({ eventId, about, nowMs }) => {
    if (!isNewNotification(eventId, nowMs)) return false;
    if ('buyer' in about) {
      rows.noticedOfBuyer(about.buyer, about.openedSinceMs, nowMs);
      return true;
    }
    const orderId =
      'holdId' in about ? instructions.find(about.holdId)?.orderId : rows.idOfReference(about.reference);
    if (orderId !== undefined) rows.noticed(orderId, nowMs);
    return true;
  });
}

/** Expired notifications deleted per new one. */
const sweptPerNotification = 2;

/** Remembers notifications of the provider. The function returns whether a notification is new. It runs inside an effect. */
function createNotificationMemory(database: Database): (eventId: string, nowMs: number) => boolean {
  const isForgotten = lt(providerNotification.receivedAtS, sql.placeholder('forgottenS'));
  const { remember, sweep } = prepare(database, {
    remember: database
      .insert(providerNotification)
      .values(placeholdersFor(providerNotification))
      .onConflictDoUpdate({
        target: providerNotification.eventId,
        set: { receivedAtS: sql`excluded.received_at_s` },
        setWhere: isForgotten,
      }),
    sweep: database.delete(providerNotification).where(isForgotten).limit(sweptPerNotification),
  });
  return (eventId, nowMs) => {
    const receivedAtS = Math.floor(nowMs / 1000);
    const forgottenS = receivedAtS - notificationRetentionS;
    const isNew = remember.run({ eventId, receivedAtS, forgottenS }) === 1;
    sweep.run({ forgottenS });
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
  function noteDecision(
    by: Actor,
    before: EscrowRow,
    decision: Decision | 'CLOSE' | 'END',
    evidence?: string,
  ): EscrowCase {
    const { escrowId, state, review } = before;
    const decided = toCase(requireRow(escrowId));
    const underWay = decided.open.map(({ kind, status }) => `${kind} ${status}`);
    recordAudit(by, 'escrow resolve', escrowId, {
      before: { state, review, found: foundOf(before) },
      after: { state: decided.order.state, decision, evidence, underWay },
    });
    return decided;
  }

  /** Whether an operator confirmed that the money of an order was paid, out or back. */
  const isPaidByOperator = ({ id, state }: EscrowRow): boolean =>
    state !== 'CLOSED' && isByOperator({ history: history.of(id) });

  return {
    Decide: writes(({ by, escrowId, decision, instructionId, nowMs }) => {
      const row = requireRow(escrowId);
      const plan = planDecision(decision, {
        ...resolvable(row, resolutionOf(row.id)),
        found: foundOf(row),
        hasPaid: instructions.hasPaid(row.id) || isPaidByOperator(row),
        hasDeclinedReturn: instructions.hasDeclinedReturn(row.id),
        hasOpen: instructions.lastOpenOf(row.id) !== undefined,
      });
      if (plan.kind === 'CONFLICT') throw stateConflict(plan.why);
      if (plan.kind === 'STOP') {
        books.stop(row, { why: stoppedByOperator, found: undefined }, row.state, nowMs);
      } else {
        rows.decided(row.id, decision === 'ACCEPT', nowMs);
      }
      if (plan.kind === 'PREPARE') instructions.prepare(row.id, plan.instruction, instructionId, nowMs);
      return noteDecision(by, row, decision);
    }),
    CloseOrder: writes(({ by, escrowId, at }) => {
      const row = requireRow(escrowId);
      // A status from before a decision or a newer request is out of date.
      const found = row.review === null ? undefined : foundOf(row);
      const apiError = errorToClose({ escrowId, state: row.state, found });
      if (apiError !== undefined) throw stateConflict(apiError);
      // If the platform cancelled the order, it is closed as requested.
      for (const { instructionId, kind } of instructions.openOf(row.id))
        instructions.move(instructionId, instructionOutcomes[kind].VOID);
      rows.end(row.id, 'CLOSED', at.atMs);
      books.moved(row, 'CLOSED', at, true);
      return noteDecision(by, row, 'CLOSE');
    }),
    EndOrder: writes(({ by, escrowId, end, evidence, at }) => {
      const row = requireRow(escrowId);
      const open = instructions.openOf(row.id);
      const plan = planEnd(end, { escrowId, state: row.state, isStopped: row.review !== null, open });
      if (plan.kind === 'CONFLICT') throw stateConflict(plan.why);
      for (const { instructionId, status, reason } of plan.ended)
        instructions.move(instructionId, status, reason);
      const moves = row.state !== end;
      // One more lookup finds out whether the provider contradicts the operator.
      rows.end(row.id, end, moves ? at.atMs : null);
      if (moves) books.moved(row, end, at, true);
      return noteDecision(by, row, 'END', evidence);
    }),
  };
}

const selectedBy = ({ state, needsReview }: CaseSelection) => {
  const equals = needsReview ? equalsWithoutIndex : eq;
  return and(
    state === undefined ? undefined : equals(escrow.state, state),
    needsReview ? isNotNull(escrow.review) : undefined,
  );
};
