import { inArray, isNotNull, or } from 'drizzle-orm';
import { decisionOn } from '../../domain/escrow.ts';
import type { EscrowStore, Settlement } from '../store.ts';
import type { Database } from './database.ts';
import { conflict, type EscrowBooks, foundOf, wanted } from './escrow-books.ts';
import type { GroupCommit } from './group-commit.ts';
import { createNotificationMemory } from './notifications.ts';
import { deployment, escrow } from './schema.ts';

/** What brings orders and the institution to agreement. */
export type EscrowSettlement = Pick<
  EscrowStore,
  'send' | 'leaveOpen' | 'settle' | 'findCase' | 'useInstitution' | 'resume' | 'due' | 'notified' | 'decide'
>;

/** The institution of databases that bear no name of one. */
const firstInstitution = 'simulated';

/** The settling of the orders in these books. */
export function createEscrowSettlement(
  database: Database,
  { read, write }: GroupCommit,
  { rows, operations, history, provenance, toCase, requireRow, resolutionOf }: EscrowBooks,
): EscrowSettlement {
  const isNewNotification = createNotificationMemory(database);

  /** What the institution is still to be asked about, and what waits for a person. */
  const isUnderWay = or(
    inArray(escrow.state, ['UNPAID', 'FROZEN']),
    inArray(escrow.id, operations.ordersWithOpen()),
    isNotNull(escrow.lookUpAtMs),
    isNotNull(escrow.attention),
  );

  return {
    send: async (operationId, lookUpAtMs) => {
      write(() => {
        const orderId = operations.find(operationId)?.orderId;
        if (orderId === undefined || !operations.move(operationId, 'SENT')) {
          throw new Error(`${operationId} is no open instruction.`);
        }
        rows.makeDue(orderId, lookUpAtMs);
      });
    },
    leaveOpen: async (id, lookUpAtMs, notices) => {
      write(() => {
        const row = requireRow(id);
        rows.leaveOpen(row.id, lookUpAtMs, notices);
        operations.leaveOpen(row.id);
      });
    },
    settle: async (settlement, at) =>
      write(() => {
        const { from, to, ended, prepared, attention } = settlement;
        const row = requireRow(settlement.escrowId);
        const isOpen = new Set(operations.openOf(row.id).map(({ operationId }) => operationId));
        if (ended.some(({ operationId }) => !isOpen.has(operationId))) return false;
        const settled = {
          ...{ id: row.id, from, to, nowMs: at.atMs },
          notices: settlement.notices,
          reference: settlement.reference ?? row.reference,
          isHeard: settlement.isHeard ? 1 : 0,
          lookUpAtMs: settlement.lookUpAtMs ?? null,
        } as const;
        if (!rows.settle(settled)) return false;
        for (const { operationId, status } of ended) operations.move(operationId, status);
        if (prepared !== undefined) {
          operations.prepare(row.id, prepared.kind, prepared.operationId, at.atMs);
        }
        if (attention !== undefined) rows.stop({ id: row.id, ...stopOf(attention) });
        if (to !== from) history.append(row.id, to, at);
        if (to === 'RELEASED' && to !== from) provenance.append(row.filingNo, 'TRANSFER', at);
        return true;
      }),
    findCase: async (id) =>
      read(() => {
        const row = rows.find(id);
        return row && toCase(row);
      }),
    useInstitution: async (name) => {
      write(() => {
        const { institution } = database.select().from(deployment).get() ?? {};
        if (institution === name) return;
        const before = institution ?? firstInstitution;
        const open = before === name ? 0 : rows.count(isUnderWay);
        if (open > 0) {
          throw conflict(
            `Orders are open at the institution ${before}: ${open}. Let them end there, or set ` +
              `ARTSEAL_PAYMENT_INSTITUTION to ${before}.`,
          );
        }
        database.update(deployment).set({ institution: name }).run();
      });
    },
    resume: async (nowMs) => {
      write(() => rows.makeAllDue(inArray(escrow.id, operations.ordersWithOpen()), nowMs));
    },
    due: async (nowMs, horizonMs, count) =>
      read(() => {
        const overdue = rows.dueUntil(nowMs, count);
        return [...overdue, ...rows.dueBehind(horizonMs, count - overdue.length)];
      }),
    notified: async (eventId, holdId, nowMs) =>
      write(() => {
        if (!isNewNotification(eventId, nowMs)) return false;
        const orderId = operations.find(holdId)?.orderId;
        if (orderId !== undefined) rows.noticed(orderId, nowMs);
        return true;
      }),
    decide: async (id, decision, operationId, nowMs) =>
      write(() => {
        const row = requireRow(id);
        const underWay = resolutionOf(row.id);
        const stopped = {
          ...wanted(row, underWay),
          found: foundOf(row),
          hasPaid: operations.hasPaid(row.id),
        };
        const outcome = decisionOn(decision, stopped);
        if (outcome.kind === 'CONFLICT') throw conflict(outcome.why);
        rows.decided(row.id, decision === 'ACCEPT', nowMs);
        if (outcome.kind === 'PREPARE') {
          if (outcome.ends && underWay) operations.move(underWay.operationId, 'DECLINED');
          operations.prepare(row.id, outcome.instruction, operationId, nowMs);
        }
        return toCase(requireRow(id));
      }),
  };
}

const stopOf = ({ why, found }: NonNullable<Settlement['attention']>) => ({
  attention: why,
  foundStanding: found?.standing ?? null,
  foundAmount: found?.amount ?? null,
  foundCurrency: found?.currency ?? null,
});
