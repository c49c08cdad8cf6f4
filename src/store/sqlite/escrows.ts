import { type Column, eq, isNotNull, lt, type SQL, sql } from 'drizzle-orm';
import { yearOf } from '../../domain/calendar.ts';
import { wishFor } from '../../domain/escrow.ts';
import { escrowId as nextEscrowId } from '../../domain/escrow-id.ts';
import { filingNotFound } from '../../domain/filing.ts';
import { transfersMax } from '../../domain/provenance.ts';
import { Refusal } from '../../domain/reason.ts';
import type { EscrowFilter, EscrowStore, PageQuery } from '../store.ts';
import type { Database } from './database.ts';
import { deploymentSecret } from './deployment-secret.ts';
import { conflict, createEscrowBooks, wanted } from './escrow-books.ts';
import { createEscrowSettlement } from './escrow-settlement.ts';
import type { GroupCommit } from './group-commit.ts';
import { createOperationBinding } from './idempotency.ts';
import { pageOf } from './paging.ts';
import { escrow, filing } from './schema.ts';
import { createSequence } from './sequence.ts';
import { prepareHot } from './statement.ts';

/** Escrow orders: what is wanted of them and how they are read here, how they are settled in escrow-settlement.ts. */
export function createEscrowStore(database: Database, commits: GroupCommit): EscrowStore {
  const { read, write } = commits;
  const idKey = deploymentSecret(database);
  const books = createEscrowBooks(database);
  const { rows, operations, history, provenance, toEscrow, toCase } = books;
  const { findRow, requireRow, requireOperation } = books;
  const nextNumber = createSequence(database, 'ESCROW');
  const binding = createOperationBinding(database);
  const filed = prepareHot<{ caller_id: number }>(
    database,
    database
      .select({ callerId: filing.callerId })
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  );

  function requireSaleable(filingNo: string, owner: number | undefined): void {
    const source = filed.get({ filingNo });
    if (source === undefined) throw filingNotFound();
    if (owner !== undefined && source.caller_id !== owner) {
      throw new Refusal(
        'PERMISSION_DENIED',
        'Only the caller that filed the artwork may open an escrow for it.',
      );
    }
    const active = rows.activeOf(filingNo);
    if (active !== undefined) {
      const isVisible = owner === undefined || active.callerId === owner;
      const name = isVisible ? `: ${active.escrowId}` : '';
      throw new Refusal('ESCROW_ACTIVE', `${filingNo} has an open escrow already${name}.`);
    }
    if (provenance.transfersOf(filingNo) >= transfersMax) {
      throw new Refusal(
        'TRANSFERS_EXHAUSTED',
        `${filingNo} has ${transfersMax} transfers, the most that a filing may have; it cannot be sold again.`,
      );
    }
  }

  return {
    ...createEscrowSettlement(database, commits, books),
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
        const underWay = books.resolutionOf(row.id);
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
    findOperation: async (operationId) => read(() => books.findOperation(operationId)),
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
