import { and, asc, desc, eq, inArray, type SQLWrapper, sql } from 'drizzle-orm';
import type { OperationKind, OperationStatus } from '../../domain/escrow.ts';
import type { Database } from './database.ts';
import { escrowOperation } from './schema.ts';
import { prepareHot } from './statement.ts';

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
  /** The kind of the last of them. */
  lastOpenOf(orderId: number): OperationKind | undefined;
  /** Whether the money of an order was paid, out or back. */
  hasPaid(orderId: number): boolean;
  /** The orders that have an open instruction, as a subquery. */
  ordersWithOpen(): SQLWrapper;
}

// Literals, so that SQLite sees that the partial index answers this.
const isOpen = sql`${escrowOperation.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`;
const isThis = eq(escrowOperation.operationId, sql.placeholder('operationId'));
const ofOrder = eq(escrowOperation.orderId, sql.placeholder('orderId'));

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
  const byId = select().where(isThis).prepare();
  const freeze = select()
    .where(and(ofOrder, sql`${escrowOperation.kind} = 'FREEZE'`))
    .prepare();
  const open = select().where(and(ofOrder, isOpen)).orderBy(asc(escrowOperation.id)).prepare();
  const lastOpen = prepareHot<{ kind: OperationKind }>(
    database,
    database
      .select({ kind: escrowOperation.kind })
      .from(escrowOperation)
      .where(and(ofOrder, isOpen))
      .orderBy(desc(escrowOperation.id))
      .limit(1),
  );
  const paid = select()
    .where(
      and(
        ofOrder,
        inArray(escrowOperation.kind, ['RELEASE', 'REFUND']),
        eq(escrowOperation.status, 'CONFIRMED'),
      ),
    )
    .prepare();
  const insert = prepareHot(
    database,
    database.insert(escrowOperation).values({
      operationId: sql.placeholder('operationId'),
      orderId: sql.placeholder('orderId'),
      kind: sql.placeholder('kind'),
      status: 'PREPARED',
      preparedAtMs: sql.placeholder('preparedAtMs'),
    }),
  );
  const move = prepareHot(
    database,
    database
      .update(escrowOperation)
      .set({ status: sql`${sql.placeholder('status')}` })
      .where(and(isThis, isOpen)),
  );
  const leaveOpen = prepareHot(
    database,
    database
      .update(escrowOperation)
      .set({ status: 'UNKNOWN' })
      .where(and(ofOrder, eq(escrowOperation.status, 'SENT'))),
  );
  return {
    prepare: (orderId, kind, operationId, preparedAtMs) => {
      insert.run({ operationId, orderId, kind, preparedAtMs });
    },
    move: (operationId, status) => move.run({ operationId, status }) === 1,
    leaveOpen: (orderId) => {
      leaveOpen.run({ orderId });
    },
    find: (operationId) => byId.get({ operationId }),
    freezeOf: (orderId) => {
      const row = freeze.get({ orderId });
      if (row === undefined) throw new Error(`Order ${orderId} has no FREEZE.`);
      return row;
    },
    openOf: (orderId) => open.all({ orderId }),
    lastOpenOf: (orderId) => lastOpen.get({ orderId })?.kind,
    hasPaid: (orderId) => paid.get({ orderId }) !== undefined,
    ordersWithOpen: () =>
      database.select({ orderId: escrowOperation.orderId }).from(escrowOperation).where(isOpen),
  };
}
