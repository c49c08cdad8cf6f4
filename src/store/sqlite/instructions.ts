import { and, asc, desc, eq, type InferSelectModel, inArray, type SQLWrapper, sql } from 'drizzle-orm';
import type { InstructionKind, InstructionStatus } from '../../domain/escrow.ts';
import type { Database } from './connection.ts';
import { escrowInstruction } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';

/** One instruction as the ledger has it. */
export type InstructionRow = Readonly<InferSelectModel<typeof escrowInstruction>>;

/** The ledger of instructions. All verbs run inside the effect that they belong to. */
export interface InstructionLedger {
  /** Writes an instruction down, before anybody gives it. */
  prepare(orderId: number, kind: InstructionKind, instructionId: string, atMs: number): void;
  /** Moves an open instruction on; false if it is not open. */
  move(instructionId: string, status: InstructionStatus, reason?: string | null): boolean;
  /** All instructions of an order that are being given are without an answer from now on. */
  leaveOpen(orderId: number): void;
  find(instructionId: string): InstructionRow | undefined;
  freezeOf(orderId: number): InstructionRow;
  /** Oldest first. */
  openOf(orderId: number): InstructionRow[];
  /** The kind of the last of them. */
  lastOpenOf(orderId: number): InstructionKind | undefined;
  /** Whether the money of an order was paid, out or back. */
  hasPaid(orderId: number): boolean;
  /** Whether an instruction to give it back was declined. */
  hasDeclinedReturn(orderId: number): boolean;
  /** The orders that have an open instruction, as a subquery. */
  ordersWithOpen(): SQLWrapper;
}

// Literals, so that SQLite sees that the partial index answers this.
const isOpen = sql`${escrowInstruction.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`;
const isThis = eq(escrowInstruction.instructionId, sql.placeholder('instructionId'));
const ofOrder = eq(escrowInstruction.orderId, sql.placeholder('orderId'));

/** The ledger of a database. */
export function createInstructionLedger(database: Database): InstructionLedger {
  const select = () => database.select().from(escrowInstruction).$dynamic();
  const byId = select().where(isThis).prepare();
  const freeze = select()
    .where(and(ofOrder, sql`${escrowInstruction.kind} = 'FREEZE'`))
    .prepare();
  const open = select().where(and(ofOrder, isOpen)).orderBy(asc(escrowInstruction.id)).prepare();
  const lastOpen = prepareRaw<{ kind: InstructionKind }>(
    database,
    database
      .select({ kind: escrowInstruction.kind })
      .from(escrowInstruction)
      .where(and(ofOrder, isOpen))
      .orderBy(desc(escrowInstruction.id))
      .limit(1),
  );
  const ended = (kinds: InstructionKind[], status: InstructionStatus) =>
    select()
      .where(and(ofOrder, inArray(escrowInstruction.kind, kinds), eq(escrowInstruction.status, status)))
      .prepare();
  const paid = ended(['RELEASE', 'REFUND'], 'CONFIRMED');
  const declinedReturn = ended(['REFUND', 'CANCEL'], 'DECLINED');
  const insert = prepareRaw(
    database,
    database
      .insert(escrowInstruction)
      .values({ ...placeholdersFor(escrowInstruction, 'id', 'status', 'reason'), status: 'PREPARED' }),
  );
  const move = prepareRaw(
    database,
    database
      .update(escrowInstruction)
      .set({ status: sql`${sql.placeholder('status')}`, reason: sql`${sql.placeholder('reason')}` })
      .where(and(isThis, isOpen)),
  );
  const leaveOpen = prepareRaw(
    database,
    database
      .update(escrowInstruction)
      .set({ status: 'UNKNOWN' })
      .where(and(ofOrder, eq(escrowInstruction.status, 'SENT'))),
  );
  return {
    prepare: (orderId, kind, instructionId, preparedAtMs) => {
      insert.run({ instructionId, orderId, kind, preparedAtMs });
    },
    move: (instructionId, status, reason = null) => move.run({ instructionId, status, reason }) === 1,
    leaveOpen: (orderId) => {
      leaveOpen.run({ orderId });
    },
    find: (instructionId) => byId.get({ instructionId }),
    freezeOf: (orderId) => {
      const row = freeze.get({ orderId });
      if (row === undefined) throw new Error(`Order ${orderId} has no FREEZE.`);
      return row;
    },
    openOf: (orderId) => open.all({ orderId }),
    lastOpenOf: (orderId) => lastOpen.get({ orderId })?.kind,
    hasPaid: (orderId) => paid.get({ orderId }) !== undefined,
    hasDeclinedReturn: (orderId) => declinedReturn.get({ orderId }) !== undefined,
    ordersWithOpen: () =>
      database.select({ orderId: escrowInstruction.orderId }).from(escrowInstruction).where(isOpen),
  };
}
