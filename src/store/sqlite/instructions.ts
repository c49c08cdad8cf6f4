import { and, asc, desc, eq, type InferSelectModel, inArray, type SQLWrapper, sql } from 'drizzle-orm';
import type { InstructionKind, InstructionStatus } from '../../domain/escrow.ts';
import type { Database } from './connection.ts';
import { escrowInstruction } from './schema.ts';
import { placeholdersFor, prepareMapped, prepareRaw } from './statement.ts';

/** A row of an instruction. */
export type InstructionRow = Readonly<InferSelectModel<typeof escrowInstruction>>;

/** The instructions. All methods run inside an effect. */
export interface InstructionLedger {
  /** Inserts an instruction as PREPARED. */
  prepare(orderId: number, kind: InstructionKind, instructionId: string, atMs: number): void;
  /** Changes the status of an open instruction. Returns false if it is not open. */
  move(instructionId: string, status: InstructionStatus, reason?: string | null): boolean;
  /** Sets all SENT instructions of an order to UNKNOWN. */
  leaveOpen(orderId: number): void;
  find(instructionId: string): InstructionRow | undefined;
  freezeOf(orderId: number): InstructionRow;
  /** Oldest first. */
  openOf(orderId: number): InstructionRow[];
  /** The kind of the last open one. */
  lastOpenOf(orderId: number): InstructionKind | undefined;
  /** Whether the money of an order was paid, out or back. */
  hasPaid(orderId: number): boolean;
  /** Whether a REFUND or CANCEL was declined. */
  hasDeclinedReturn(orderId: number): boolean;
  /** The orders that have an open instruction, as a subquery. */
  ordersWithOpen(): SQLWrapper;
}

// Literals, so that SQLite can use the partial index.
const isOpen = sql`${escrowInstruction.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`;
const isThis = eq(escrowInstruction.instructionId, sql.placeholder('instructionId'));
const ofOrder = eq(escrowInstruction.orderId, sql.placeholder('orderId'));

export function createInstructionLedger(database: Database): InstructionLedger {
  const select = () => database.select().from(escrowInstruction).$dynamic();
  const byId = prepareMapped(select().where(isThis));
  const freeze = prepareMapped(select().where(and(ofOrder, sql`${escrowInstruction.kind} = 'FREEZE'`)));
  const open = prepareMapped(select().where(and(ofOrder, isOpen)).orderBy(asc(escrowInstruction.id)));
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
    prepareMapped(
      select().where(
        and(ofOrder, inArray(escrowInstruction.kind, kinds), eq(escrowInstruction.status, status)),
      ),
    );
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
