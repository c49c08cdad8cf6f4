import {
  and,
  asc,
  type Column,
  desc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  type SQL,
  sql,
} from 'drizzle-orm';
import { yearOf } from '../../domain/calendar.ts';
import { type Escrow, escrowId } from '../../domain/escrow.ts';
import { Refusal } from '../../domain/reason.ts';
import {
  type EscrowCase,
  type EscrowFilter,
  type EscrowStore,
  notificationRetentionS,
  type Operation,
  type PageQuery,
} from '../store.ts';
import type { Database } from './database.ts';
import { createEscrowHistory } from './escrow-history.ts';
import type { GroupCommit } from './group-commit.ts';
import { createOperationBinding } from './idempotency.ts';
import { createOperationLedger } from './operations.ts';
import { pageOf, rowsFor } from './paging.ts';
import { createProvenanceRecords } from './provenance.ts';
import { caller, deployment, escrow, filing, institutionNotification } from './schema.ts';
import { createSequence } from './sequence.ts';

/** How many forgotten notifications a new one sweeps away. */
const sweptPerNotification = 2;

const columns = {
  id: escrow.id,
  escrowId: escrow.escrowId,
  filingNo: escrow.filingNo,
  type: escrow.type,
  amount: escrow.amount,
  buyerId: escrow.buyerId,
  sellerId: escrow.sellerId,
  state: escrow.state,
  timestamp: escrow.timestamp,
  reference: escrow.reference,
  unanswered: escrow.unanswered,
  attention: escrow.attention,
  trusted: escrow.trusted,
  caller: caller.name,
};

/** A row with all columns of an order. */
type OrderRow = Omit<Escrow, 'history'> & {
  readonly id: number;
  readonly reference: string | null;
  readonly unanswered: number;
  readonly attention: string | null;
  readonly trusted: boolean;
};

/** Escrow orders. */
export function createEscrowStore(database: Database, { read, write }: GroupCommit): EscrowStore {
  const idKey = database.select().from(deployment).all()[0]?.escrowIdKey;
  if (idKey === undefined) throw new Error('The database has no deployment stamp.');
  const nextNumber = createSequence(database, 'ESCROW');
  const provenance = createProvenanceRecords(database);
  const history = createEscrowHistory(database);
  const operations = createOperationLedger(database);
  const binding = createOperationBinding(database);
  const rows = () =>
    database.select(columns).from(escrow).innerJoin(caller, eq(caller.id, escrow.callerId)).$dynamic();

  function toEscrows(found: readonly OrderRow[]): Map<number, Escrow> {
    const changes = history.of(found.map(({ id }) => id));
    return new Map(
      found.map(({ id, reference: _, unanswered: _1, attention: _2, trusted: _3, ...row }) => [
        id,
        { ...row, history: changes.get(id) ?? [] },
      ]),
    );
  }

  function toEscrow(row: OrderRow): Escrow {
    const [order] = toEscrows([row]).values();
    if (order === undefined) throw new Error('No order was made of a row.');
    return order;
  }

  function findRow(id: string, owner?: number): OrderRow {
    const row = rows()
      .where(and(eq(escrow.escrowId, id), ownedBy(owner)))
      .get();
    if (row === undefined) throw new Refusal('ESCROW_NOT_FOUND', 'escrowId names no escrow.');
    return row;
  }

  function operationOf(operationId: string): Operation {
    const operation = operations.find(operationId);
    const row = operation && rows().where(eq(escrow.id, operation.orderId)).get();
    if (operation === undefined || row === undefined)
      throw new Error(`There is no operation ${operationId}.`);
    return { operationId, kind: operation.kind, status: operation.status, order: toEscrow(row) };
  }

  function toCase(row: OrderRow): EscrowCase {
    const { operationId: holdId, preparedAtMs: openedAtMs } = operations.freezeOf(row.id);
    return {
      order: toEscrow(row),
      holdId,
      openedAtMs,
      reference: row.reference ?? undefined,
      unanswered: row.unanswered,
      attention: row.attention ?? undefined,
      trusted: row.trusted,
      open: operations.openOf(row.id),
    };
  }

  /** Makes orders due at a time, but for those that wait for a person. */
  function makeDue(which: SQL, lookUpAtMs: number): void {
    database
      .update(escrow)
      .set({ lookUpAtMs })
      .where(and(which, isNull(escrow.attention)))
      .run();
  }

  /** Orders by when they are due: one range of the index, so that those which are not are never read. */
  function lookedUpWhere(range: SQL, count: number): string[] {
    return database
      .select({ escrowId: escrow.escrowId })
      .from(escrow)
      .where(range)
      .orderBy(asc(escrow.lookUpAtMs))
      .limit(count)
      .all()
      .map(({ escrowId: due }) => due);
  }

  /** The open instruction that moves the money of an order on. */
  const resolutionOf = (orderId: number) => operations.openOf(orderId).find(({ kind }) => kind !== 'FREEZE');

  function requireSaleable(filingNo: string, owner: number | undefined): void {
    const filed = database
      .select({ callerId: filing.callerId })
      .from(filing)
      .where(eq(filing.filingNo, filingNo))
      .get();
    if (filed === undefined) throw new Refusal('FILING_NOT_FOUND', 'filingNo names no filing.');
    if (owner !== undefined && filed.callerId !== owner) {
      throw new Refusal(
        'PERMISSION_DENIED',
        'Only the caller that filed the artwork may open an escrow for it.',
      );
    }
    const active = database
      .select({ escrowId: escrow.escrowId })
      .from(escrow)
      // Literals, so that SQLite sees that the partial index answers this.
      .where(and(eq(escrow.filingNo, filingNo), sql`${escrow.state} IN ('UNPAID', 'FROZEN')`))
      .get();
    if (active === undefined) return;
    throw new Refusal('ESCROW_ACTIVE', `${filingNo} has an open escrow already: ${active.escrowId}.`);
  }

  return {
    open: async (terms, at, work, owner) =>
      write(() => {
        const earlier = binding.operationOf(work);
        if (earlier !== undefined) return operationOf(earlier);
        requireSaleable(terms.filingNo, owner);
        const year = yearOf(at.timestamp);
        const { id } = database
          .insert(escrow)
          .values({
            ...terms,
            escrowId: escrowId(year, nextNumber(year), idKey),
            callerId: work.callerId,
            state: 'UNPAID',
            timestamp: at.timestamp,
          })
          .returning({ id: escrow.id })
          .get();
        history.append(id, 'UNPAID', at);
        operations.prepare(id, 'FREEZE', work.operationId, at.atMs);
        binding.bind(work);
        return operationOf(work.operationId);
      }),
    prepare: async (kind, id, at, work, owner) =>
      write(() => {
        const earlier = binding.operationOf(work);
        if (earlier !== undefined) return operationOf(earlier);
        const row = findRow(id, owner);
        if (row.state !== 'FROZEN') {
          const done = kind === 'RELEASE' ? 'released' : 'refunded';
          throw conflict(`${id} is ${row.state}; only a FROZEN order can be ${done}.`);
        }
        const underWay = resolutionOf(row.id);
        if (underWay === undefined) {
          if (row.attention !== null) throw conflict(`${id} waits for a decision of the operator.`);
          operations.prepare(row.id, kind, work.operationId, at.atMs);
        } else if (underWay.kind !== kind) {
          throw conflict(`A ${underWay.kind} of ${id} is under way.`);
        }
        const operationId = underWay?.operationId ?? work.operationId;
        binding.bind({ ...work, operationId });
        return operationOf(operationId);
      }),
    findOperation: async (operationId) =>
      read(() => (operations.find(operationId) === undefined ? undefined : operationOf(operationId))),
    send: async (operationId, lookUpAtMs) => {
      write(() => {
        const orderId = operations.find(operationId)?.orderId;
        if (orderId === undefined || !operations.move(operationId, 'SENT')) {
          throw new Error(`${operationId} is no open instruction.`);
        }
        makeDue(eq(escrow.id, orderId), lookUpAtMs);
      });
    },
    leaveOpen: async (id, lookUpAtMs) => {
      write(() => {
        const unanswered = sql`${escrow.unanswered} + 1`;
        const isThis = and(eq(escrow.escrowId, id), isNull(escrow.attention));
        database.update(escrow).set({ lookUpAtMs, unanswered }).where(isThis).run();
        operations.leaveOpen(findRow(id).id);
      });
    },
    settle: async (settlement, at) =>
      write(() => {
        const { escrowId: id, from, to, ended, prepared, attention, lookUpAtMs } = settlement;
        const row = findRow(id);
        const isOpen = new Set(operations.openOf(row.id).map(({ operationId }) => operationId));
        if (row.state !== from || ended.some(({ operationId }) => !isOpen.has(operationId))) return false;
        const changes = {
          state: to,
          reference: settlement.reference ?? row.reference,
          attention: attention ?? null,
          lookUpAtMs: attention === undefined ? (lookUpAtMs ?? null) : null,
          unanswered: 0,
        };
        const isUnchanged = and(eq(escrow.id, row.id), eq(escrow.state, from));
        if (database.update(escrow).set(changes).where(isUnchanged).run().changes === 0) return false;
        for (const { operationId, status } of ended) operations.move(operationId, status);
        if (prepared !== undefined) {
          operations.prepare(row.id, prepared.kind, prepared.operationId, at.atMs);
        }
        if (to !== from) history.append(row.id, to, at);
        if (to === 'RELEASED' && to !== from) provenance.append(row.filingNo, 'TRANSFER', at);
        return true;
      }),
    findCase: async (id) =>
      read(() => {
        const row = rows().where(eq(escrow.escrowId, id)).get();
        return row && toCase(row);
      }),
    resume: async (nowMs) => {
      write(() => makeDue(inArray(escrow.id, operations.ordersWithOpen()), nowMs));
    },
    due: async (nowMs, horizonMs, count) =>
      read(() => {
        const overdue = lookedUpWhere(lte(escrow.lookUpAtMs, nowMs), count);
        if (overdue.length === count) return overdue;
        return [...overdue, ...lookedUpWhere(gt(escrow.lookUpAtMs, horizonMs), count - overdue.length)];
      }),
    notified: async (eventId, holdId, nowMs) =>
      write(() => {
        const receivedAtS = Math.floor(nowMs / 1000);
        const isForgotten = lt(institutionNotification.receivedAtS, receivedAtS - notificationRetentionS);
        const remembered = database
          .insert(institutionNotification)
          .values({ eventId, receivedAtS })
          .onConflictDoUpdate({
            target: institutionNotification.eventId,
            set: { receivedAtS },
            setWhere: isForgotten,
          })
          .run();
        database.delete(institutionNotification).where(isForgotten).limit(sweptPerNotification).run();
        if (remembered.changes === 0) return false;
        const orderId = operations.find(holdId)?.orderId;
        if (orderId !== undefined) makeDue(eq(escrow.id, orderId), nowMs);
        return true;
      }),
    decide: async (id, decision, operationId, nowMs) =>
      write(() => {
        const row = findRow(id);
        if (row.attention === null) throw conflict(`${id} does not wait for a decision.`);
        const underWay = resolutionOf(row.id);
        if (decision === 'RETURN' && underWay?.kind === 'RELEASE') {
          throw conflict(`A RELEASE of ${id} is under way; its money cannot go both ways.`);
        }
        if (decision === 'RETURN' && operations.hasPaid(row.id)) {
          throw conflict(`The money of ${id} was paid already; it cannot be given back a second time.`);
        }
        const trusted = decision !== 'LOOK_AGAIN';
        const isThis = eq(escrow.id, row.id);
        database.update(escrow).set({ attention: null, trusted, lookUpAtMs: nowMs }).where(isThis).run();
        if (decision === 'RETURN' && underWay === undefined) {
          operations.prepare(row.id, row.state === 'UNPAID' ? 'CANCEL' : 'REFUND', operationId, nowMs);
        }
        return toCase(findRow(id));
      }),
    find: async (id, owner) =>
      read(() => {
        const row = rows()
          .where(and(eq(escrow.escrowId, id), ownedBy(owner)))
          .get();
        return row && toEscrow(row);
      }),
    list: async (filter, page) =>
      read(() => {
        const found = rows()
          .where(and(...selectedBy(filter), before(page)))
          .orderBy(desc(escrow.id))
          .limit(rowsFor(page))
          .all();
        const orders = toEscrows(found);
        return pageOf(found, page, ({ id }) => orders.get(id) as Escrow);
      }),
    listCases: async ({ state, isInNeed }, page) =>
      read(() => {
        const equals = isInNeed ? equalsInPassing : eq;
        const isAsked = and(
          state === undefined ? undefined : equals(escrow.state, state),
          isInNeed ? isNotNull(escrow.attention) : undefined,
        );
        const found = rows()
          .where(and(isAsked, before(page)))
          .orderBy(desc(escrow.id))
          .limit(rowsFor(page))
          .all();
        return pageOf(found, page, toCase);
      }),
  };
}

const conflict = (message: string): Refusal => new Refusal('ESCROW_STATE_CONFLICT', message);

const ownedBy = (owner: number | undefined) => (owner === undefined ? undefined : eq(escrow.callerId, owner));

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
