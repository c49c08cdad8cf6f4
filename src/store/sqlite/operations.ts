import { and, asc, eq, inArray, type SQLWrapper } from 'drizzle-orm';
import type { OperationKind, OperationStatus } from '../../domain/escrow.ts';
import type { Database } from './database.ts';
import { escrowOperation } from './schema.ts';

/** One instruction as the ledger has it. */
export interface OperationRow {
  readonly operationId: string;
  readonly orderId: number;
  readonly kind: OperationKind;
  readonly status: OperationStatus;
  readonly preparedAtMs: number;
}

/** The ledger of instructions. All verbs run inside the effect that they belong to. */
export interface OperationLedger {
  /** Writes an instruction down, before anybody gives it. */
  prepare(orderId: number, kind: OperationKind, operationId: string, atMs: number): void;
  /** Moves an open instruction on; false if it is not open. */
  move(operationId: string, status: OperationStatus): boolean;
  /** All instructions of an order that are being given are without an answer from now on. */
  leaveOpen(orderId: number): void;
  find(operationId: string): OperationRow | undefined;
  freezeOf(orderId: number): OperationRow;
  /** Oldest first. */
  openOf(orderId: number): OperationRow[];
  /** Whether the money of an order was paid, out or back. */
  hasPaid(orderId: number): boolean;
  /** The orders that have an open instruction, as a subquery. */
  ordersWithOpen(): SQLWrapper;
}

const open: OperationStatus[] = ['PREPARED', 'SENT', 'UNKNOWN'];
const isOpen = inArray(escrowOperation.status, open);

/** The ledger of a database. */
export function createOperationLedger(database: Database): OperationLedger {
  const columns = {
    operationId: escrowOperation.operationId,
    orderId: escrowOperation.orderId,
    kind: escrowOperation.kind,
    status: escrowOperation.status,
    preparedAtMs: escrowOperation.preparedAtMs,
  };
  const select = () => database.select(columns).from(escrowOperation).$dynamic();
  return {
    prepare: (orderId, kind, operationId, preparedAtMs) => {
      const row = { operationId, orderId, kind, status: 'PREPARED', preparedAtMs } as const;
      database.insert(escrowOperation).values(row).run();
    },
    move: (operationId, status) => {
      const isThis = and(eq(escrowOperation.operationId, operationId), isOpen);
      return database.update(escrowOperation).set({ status }).where(isThis).run().changes === 1;
    },
    leaveOpen: (orderId) => {
      const isSent = and(eq(escrowOperation.orderId, orderId), eq(escrowOperation.status, 'SENT'));
      database.update(escrowOperation).set({ status: 'UNKNOWN' }).where(isSent).run();
    },
    find: (operationId) => select().where(eq(escrowOperation.operationId, operationId)).get(),
    freezeOf: (orderId) => {
      const isFreeze = and(eq(escrowOperation.orderId, orderId), eq(escrowOperation.kind, 'FREEZE'));
      const row = select().where(isFreeze).get();
      if (row === undefined) throw new Error(`Order ${orderId} has no FREEZE.`);
      return row;
    },
    openOf: (orderId) =>
      select()
        .where(and(eq(escrowOperation.orderId, orderId), isOpen))
        .orderBy(asc(escrowOperation.id))
        .all(),
    hasPaid: (orderId) => {
      const isPaid = and(
        eq(escrowOperation.orderId, orderId),
        inArray(escrowOperation.kind, ['RELEASE', 'REFUND']),
        eq(escrowOperation.status, 'CONFIRMED'),
      );
      return select().where(isPaid).get() !== undefined;
    },
    ordersWithOpen: () =>
      database.select({ orderId: escrowOperation.orderId }).from(escrowOperation).where(isOpen),
  };
}
