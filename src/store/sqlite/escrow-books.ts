import { type Escrow, escrowNotFound, type Hold, pendingOf, type WantedOrder } from '../../domain/escrow.ts';
import type { Operation } from '../escrow-commands.ts';
import type { EscrowCase } from '../reconciliation-commands.ts';
import type { Database } from './database.ts';
import { createEscrowHistory, type EscrowHistory } from './escrow-history.ts';
import { createEscrowRows, type EscrowRow, type EscrowRows } from './escrow-rows.ts';
import { createOperationLedger, type OperationLedger, type OperationRow } from './operations.ts';
import { createProvenanceRecords, type ProvenanceRecords } from './provenance.ts';

/** Orders with what belongs to them: their instructions, their history, and the records of what they sold. */
export interface EscrowBooks {
  readonly rows: EscrowRows;
  readonly operations: OperationLedger;
  readonly history: EscrowHistory;
  readonly provenance: ProvenanceRecords;
  toEscrow(row: EscrowRow): Escrow;
  toCase(row: EscrowRow): EscrowCase;
  /** The row of an order of `owner`, or of anybody if that is undefined. */
  findRow(escrowId: string, owner: number | undefined): EscrowRow | undefined;
  /** The same. Throws ESCROW_NOT_FOUND. */
  requireRow(escrowId: string, owner?: number): EscrowRow;
  findOperation(operationId: string): Operation | undefined;
  /** The same, where it must be there. */
  requireOperation(operationId: string): Operation;
  /** The open instruction that moves the money of an order on. */
  resolutionOf(orderId: number): OperationRow | undefined;
}

/** The books of a database. */
export function createEscrowBooks(database: Database): EscrowBooks {
  const history = createEscrowHistory(database);
  const operations = createOperationLedger(database);
  const rows = createEscrowRows(database);
  const provenance = createProvenanceRecords(database);

  function toEscrow(row: EscrowRow): Escrow {
    const { escrowId, filingNo, type, amount, buyerId, sellerId, state, timestamp, caller } = row;
    const terms = { filingNo, type, amount, buyerId, sellerId };
    const pending = pendingOf(operations.lastOpenOf(row.id));
    return { escrowId, ...terms, state, pending, timestamp, caller, history: history.of(row.id) };
  }

  function findRow(id: string, owner: number | undefined): EscrowRow | undefined {
    const row = rows.find(id);
    return owner === undefined || row?.callerId === owner ? row : undefined;
  }

  function requireRow(id: string, owner?: number): EscrowRow {
    const row = findRow(id, owner);
    if (row === undefined) throw escrowNotFound();
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

  return {
    ...{ rows, operations, history, provenance, toEscrow, toCase },
    ...{ findRow, requireRow, findOperation, requireOperation },
    resolutionOf: (orderId) => operations.openOf(orderId).find(({ kind }) => kind !== 'FREEZE'),
  };
}

/** What the institution said when an order last began to wait for a person. */
export function foundOf({ foundStanding, foundAmount, foundCurrency }: EscrowRow): Hold | undefined {
  if (foundStanding === null) return undefined;
  return {
    standing: foundStanding,
    amount: foundAmount ?? undefined,
    currency: foundCurrency ?? undefined,
  };
}

/** An order as somebody wants something of it. */
export const wanted = (row: EscrowRow, underWay: OperationRow | undefined): WantedOrder => ({
  escrowId: row.escrowId,
  state: row.state,
  underWay: underWay?.kind,
  isStopped: row.attention !== null,
});
