import { type Column, eq, inArray, isNotNull, lt, or, type SQL, sql } from 'drizzle-orm';
import { yearOf } from '../../domain/calendar.ts';
import { decisionOn, type Escrow, type Hold, type WantedOrder, wishFor } from '../../domain/escrow.ts';
import { escrowId as nextEscrowId } from '../../domain/escrow-id.ts';
import { Refusal } from '../../domain/reason.ts';
import type { EscrowCase, EscrowFilter, EscrowStore, Operation, PageQuery, Settlement } from '../store.ts';
import type { Database } from './database.ts';
import { createEscrowHistory } from './escrow-history.ts';
import { createEscrowRows, type EscrowRow } from './escrow-rows.ts';
import type { GroupCommit } from './group-commit.ts';
import { createOperationBinding } from './idempotency.ts';
import { createNotificationMemory } from './notifications.ts';
import { createOperationLedger, type OperationRow } from './operations.ts';
import { pageOf } from './paging.ts';
import { createProvenanceRecords } from './provenance.ts';
import { deployment, escrow, filing } from './schema.ts';
import { createSequence } from './sequence.ts';
import { prepareHot } from './statement.ts';

/** The institution of databases that bear no name of one. */
const firstInstitution = 'simulated';

/** Escrow orders. */
export function createEscrowStore(database: Database, { read, write }: GroupCommit): EscrowStore {
  const idKey = database.select().from(deployment).all()[0]?.escrowIdKey;
  if (idKey === undefined) throw new Error('The database has no deployment stamp.');
  const nextNumber = createSequence(database, 'ESCROW');
  const provenance = createProvenanceRecords(database);
  const history = createEscrowHistory(database);
  const operations = createOperationLedger(database);
  const binding = createOperationBinding(database);
  const isNewNotification = createNotificationMemory(database);
  const rows = createEscrowRows(database);
  const filed = prepareHot<{ caller_id: number }>(
    database,
    database
      .select({ callerId: filing.callerId })
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  );

  function toEscrow(row: EscrowRow): Escrow {
    const { escrowId, filingNo, type, amount, buyerId, sellerId, state, timestamp, caller } = row;
    const terms = { filingNo, type, amount, buyerId, sellerId };
    return { escrowId, ...terms, state, timestamp, caller, history: history.of(row.id) };
  }

  /** The row of an order of `owner`, or of anybody if that is undefined. */
  function findRow(id: string, owner: number | undefined): EscrowRow | undefined {
    const row = rows.find(id);
    return owner === undefined || row?.callerId === owner ? row : undefined;
  }

  function requireRow(id: string, owner?: number): EscrowRow {
    const row = findRow(id, owner);
    if (row === undefined) throw new Refusal('ESCROW_NOT_FOUND', 'escrowId names no escrow.');
    return row;
  }

  function findOperation(operationId: string): Operation | undefined {
    const operation = operations.find(operationId);
    const row = operation && rows.byId(operation.orderId);
    return row && { operationId, kind: operation.kind, status: operation.status, order: toEscrow(row) };
  }

  function requireOperation(operationId: string): Operation {
    const operation = findOperation(operationId);
    if (operation === undefined) throw new Error(`There is no operation ${operationId}.`);
    return operation;
  }

  function toCase(row: EscrowRow): EscrowCase {
    const { operationId: holdId, preparedAtMs: openedAtMs } = operations.freezeOf(row.id);
    return {
      order: toEscrow(row),
      holdId,
      openedAtMs,
      reference: row.reference ?? undefined,
      unanswered: row.unanswered,
      attention: row.attention ?? undefined,
      accepted: row.accepted ? foundOf(row) : undefined,
      notices: row.notices,
      open: operations.openOf(row.id),
    };
  }

  /** What the institution is still to be asked about, and what waits for a person. */
  const isUnderWay = or(
    inArray(escrow.state, ['UNPAID', 'FROZEN']),
    inArray(escrow.id, operations.ordersWithOpen()),
    isNotNull(escrow.lookUpAtMs),
    isNotNull(escrow.attention),
  );

  /** The open instruction that moves the money of an order on. */
  const resolutionOf = (orderId: number) => operations.openOf(orderId).find(({ kind }) => kind !== 'FREEZE');

  function requireSaleable(filingNo: string, owner: number | undefined): void {
    const source = filed.get({ filingNo });
    if (source === undefined) throw new Refusal('FILING_NOT_FOUND', 'filingNo names no filing.');
    if (owner !== undefined && source.caller_id !== owner) {
      throw new Refusal(
        'PERMISSION_DENIED',
        'Only the caller that filed the artwork may open an escrow for it.',
      );
    }
    const active = rows.activeOf(filingNo);
    if (active === undefined) return;
    const isVisible = owner === undefined || active.callerId === owner;
    const name = isVisible ? `: ${active.escrowId}` : '';
    throw new Refusal('ESCROW_ACTIVE', `${filingNo} has an open escrow already${name}.`);
  }

  return {
    open: async (terms, at, work, owner) =>
      write(() => {
        const earlier = binding.operationOf(work);
        if (earlier !== undefined) return requireOperation(earlier);
        requireSaleable(terms.filingNo, owner);
        const year = yearOf(at.timestamp);
        const id = rows.insert({
          ...terms,
          escrowId: nextEscrowId(year, nextNumber(year), idKey),
          callerId: work.callerId,
          timestamp: at.timestamp,
          lookUpAtMs: at.atMs,
        });
        history.append(id, 'UNPAID', at);
        operations.prepare(id, 'FREEZE', work.operationId, at.atMs);
        binding.bind(work);
        return requireOperation(work.operationId);
      }),
    prepare: async (kind, id, at, work, owner) =>
      write(() => {
        const earlier = binding.operationOf(work);
        if (earlier !== undefined) return requireOperation(earlier);
        const row = requireRow(id, owner);
        const underWay = resolutionOf(row.id);
        const outcome = wishFor(kind, wanted(row, underWay));
        if (outcome.kind === 'CONFLICT') throw conflict(outcome.why);
        if (outcome.kind === 'PREPARE') {
          operations.prepare(row.id, outcome.instruction, work.operationId, at.atMs);
          rows.makeDue(row.id, at.atMs);
        }
        const operationId = underWay?.operationId ?? work.operationId;
        binding.bind({ ...work, operationId });
        return requireOperation(operationId);
      }),
    findRepeated: async (work) =>
      read(() => {
        const operationId = binding.operationOf(work);
        return operationId === undefined ? undefined : requireOperation(operationId);
      }),
    findOperation: async (operationId) => read(() => findOperation(operationId)),
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
        const {
          escrowId: id,
          from,
          to,
          ended,
          prepared,
          attention,
          isHeard,
          notices,
          lookUpAtMs,
        } = settlement;
        const row = requireRow(id);
        const isOpen = new Set(operations.openOf(row.id).map(({ operationId }) => operationId));
        if (ended.some(({ operationId }) => !isOpen.has(operationId))) return false;
        const settled = {
          ...{ id: row.id, from, to, notices, nowMs: at.atMs },
          reference: settlement.reference ?? row.reference,
          isHeard: isHeard ? 1 : 0,
          lookUpAtMs: lookUpAtMs ?? null,
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
    find: async (id, owner) =>
      read(() => {
        const row = findRow(id, owner);
        return row && toEscrow(row);
      }),
    list: async (filter, page) =>
      read(() => pageOf(rows.list([...selectedBy(filter), before(page)], page), page, toEscrow)),
    listCases: async ({ state, isInNeed }, page) =>
      read(() => {
        const equals = isInNeed ? equalsInPassing : eq;
        const conditions = [
          state === undefined ? undefined : equals(escrow.state, state),
          isInNeed ? isNotNull(escrow.attention) : undefined,
        ];
        return pageOf(rows.list([...conditions, before(page)], page), page, toCase);
      }),
  };
}

/** What the institution said when an order last began to wait for a person. */
function foundOf({ foundStanding, foundAmount, foundCurrency }: EscrowRow): Hold | undefined {
  if (foundStanding === null) return undefined;
  return {
    standing: foundStanding,
    amount: foundAmount ?? undefined,
    currency: foundCurrency ?? undefined,
  };
}

/** An order as somebody wants something of it. */
const wanted = (row: EscrowRow, underWay: OperationRow | undefined): WantedOrder => ({
  escrowId: row.escrowId,
  state: row.state,
  underWay: underWay?.kind,
  isStopped: row.attention !== null,
});

const stopOf = ({ why, found }: NonNullable<Settlement['attention']>) => ({
  attention: why,
  foundStanding: found?.standing ?? null,
  foundAmount: found?.amount ?? null,
  foundCurrency: found?.currency ?? null,
});

const conflict = (message: string): Refusal => new Refusal('ESCROW_STATE_CONFLICT', message);

/** Equality that SQLite looks up in no index: for what many orders share, beside what few do. */
const equalsInPassing = (column: Column, value: unknown): SQL => sql`+${column} = ${value}`;

const selectedBy = ({ owner, state, filingNo }: EscrowFilter) => {
  const equals = filingNo === undefined ? eq : equalsInPassing;
  return [
    filingNo === undefined ? undefined : eq(escrow.filingNo, filingNo),
    owner === undefined ? undefined : equals(escrow.callerId, owner),
    state === undefined ? undefined : equals(escrow.state, state),
  ];
};

const before = ({ from }: PageQuery) => (from === undefined ? undefined : lt(escrow.id, from));
