import { inArray, isNotNull, or } from 'drizzle-orm';
import { decisionOn, refuseChangeOfInstitution, stateConflict } from '../../domain/escrow.ts';
import type { ReconciliationCommands, Settlement } from '../reconciliation-commands.ts';
import type { Database } from './database.ts';
import { type EscrowBooks, foundOf, wanted } from './escrow-books.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { createNotificationMemory } from './notifications.ts';
import { deployment, escrow } from './schema.ts';

/** The institution of databases that bear no name of one. */
const firstInstitution = 'simulated';

/** Handlers of what brings orders and the institution to agreement. */
export function createEscrowSettlement(
  database: Database,
  { rows, operations, history, provenance, toCase, requireRow, resolutionOf }: EscrowBooks,
): Handlers<Exclude<keyof ReconciliationCommands, 'FindOperation' | 'ListCases'>> {
  const isNewNotification = createNotificationMemory(database);

  /** What the institution is still to be asked about, and what waits for a person. */
  const isUnderWay = or(
    inArray(escrow.state, ['UNPAID', 'FROZEN']),
    inArray(escrow.id, operations.ordersWithOpen()),
    isNotNull(escrow.lookUpAtMs),
    isNotNull(escrow.attention),
  );

  return {
    NoteSent: writes(({ operationId, lookUpAtMs }) => {
      const orderId = operations.find(operationId)?.orderId;
      if (orderId === undefined || !operations.move(operationId, 'SENT')) {
        throw new Error(`${operationId} is no open instruction.`);
      }
      rows.makeDue(orderId, lookUpAtMs);
      return undefined;
    }),
    NoteUnanswered: writes(({ escrowId, lookUpAtMs, notices }) => {
      const row = requireRow(escrowId);
      rows.leaveOpen(row.id, lookUpAtMs, notices);
      operations.leaveOpen(row.id);
      return undefined;
    }),
    Settle: writes(({ settlement, at }) => {
      const { from, to, ended, prepared, attention } = settlement;
      const row = requireRow(settlement.escrowId);
      const isOpen = new Set(operations.openOf(row.id).map(({ operationId }) => operationId));
      if (ended.some(({ operationId }) => !isOpen.has(operationId))) return undefined;
      const settled = {
        ...{ id: row.id, from, to, nowMs: at.atMs },
        notices: settlement.notices,
        reference: settlement.reference ?? row.reference,
        isHeard: settlement.isHeard ? 1 : 0,
        lookUpAtMs: settlement.lookUpAtMs ?? null,
      } as const;
      if (!rows.settle(settled)) return undefined;
      for (const { operationId, status } of ended) operations.move(operationId, status);
      if (prepared !== undefined) {
        operations.prepare(row.id, prepared.kind, prepared.operationId, at.atMs);
      }
      if (attention !== undefined) rows.stop({ id: row.id, ...stopOf(attention) });
      if (to !== from) history.append(row.id, to, at);
      if (to === 'RELEASED' && to !== from) provenance.append(row.filingNo, 'TRANSFER', at);
      return toCase(requireRow(settlement.escrowId));
    }),
    FindCase: reads(({ escrowId }) => {
      const row = rows.find(escrowId);
      return row && toCase(row);
    }),
    UseInstitution: writes(({ name }) => {
      const { institution } = database.select().from(deployment).get() ?? {};
      if (institution === name) return undefined;
      const before = institution ?? firstInstitution;
      if (before !== name) refuseChangeOfInstitution(before, rows.count(isUnderWay));
      database.update(deployment).set({ institution: name }).run();
      return undefined;
    }),
    ResumeOpen: writes(({ nowMs }) => {
      rows.makeAllDue(inArray(escrow.id, operations.ordersWithOpen()), nowMs);
      return undefined;
    }),
    ListDue: reads(({ nowMs, horizonMs, count }) => {
      const overdue = rows.dueUntil(nowMs, count);
      return [...overdue, ...rows.dueBehind(horizonMs, count - overdue.length)];
    }),
    TakeNotification: writes(({ eventId, holdId, nowMs }) => {
      if (!isNewNotification(eventId, nowMs)) return false;
      const orderId = operations.find(holdId)?.orderId;
      if (orderId !== undefined) rows.noticed(orderId, nowMs);
      return true;
    }),
    Decide: writes(({ escrowId, decision, operationId, nowMs }) => {
      const row = requireRow(escrowId);
      const underWay = resolutionOf(row.id);
      const stopped = {
        ...wanted(row, underWay),
        found: foundOf(row),
        hasPaid: operations.hasPaid(row.id),
      };
      const outcome = decisionOn(decision, stopped);
      if (outcome.kind === 'CONFLICT') throw stateConflict(outcome.why);
      rows.decided(row.id, decision === 'ACCEPT', nowMs);
      if (outcome.kind === 'PREPARE') {
        if (outcome.ends && underWay) operations.move(underWay.operationId, 'DECLINED');
        operations.prepare(row.id, outcome.instruction, operationId, nowMs);
      }
      return toCase(requireRow(escrowId));
    }),
  };
}

const stopOf = ({ why, found }: NonNullable<Settlement['attention']>) => ({
  attention: why,
  foundStanding: found?.standing ?? null,
  foundAmount: found?.amount ?? null,
  foundCurrency: found?.currency ?? null,
});
