import type { PaymentSnapshot, PaymentStatus } from '../../domain/payment.ts';
import type { PaymentInstruction } from '../institution.ts';
import { openLedgerFile } from './ledger-file.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { statusAfter, type Verdict } from './rules.ts';

/** A hold in the books; a VOID one is a tombstone and has neither amount nor end. */
export interface SimulatedHold {
  readonly holdId: string;
  readonly escrowId: string;
  readonly status: Exclude<PaymentStatus, 'ABSENT'>;
  readonly amount: bigint | undefined;
  readonly currency: string | undefined;
  readonly expiresAtMs: number | undefined;
}

/** How an instruction is met. */
export interface Treatment {
  readonly verdict: Verdict;
  /** How long a hold lasts that is made now, in milliseconds. */
  readonly holdLastsMs: number;
}

/**
 * The simulator's books, in a file that outlives the process however it ends. What a verb changes is on disk
 * when it returns; each change of a status puts a notification into the outbox in the same transaction.
 */
export interface Ledger {
  /** Signs notifications. */
  readonly secret: Uint8Array;
  readonly outbox: Outbox;
  /** Makes the changes of several verbs one transaction. */
  together<T>(changes: () => T): T;
  /** Counts one more sending of an instruction: 1 for the first. Throws if its id belongs to another one. */
  countAttempt(instruction: PaymentInstruction): number;
  /** Carries a counted instruction out unless it already was, and tells where the money is. */
  carryOut(instruction: PaymentInstruction, treatment: Treatment, nowMs: number): PaymentSnapshot;
  /** Where the money of an order is. */
  find(holdId: string, nowMs: number): PaymentSnapshot;
  /** Lapses the holds that have run out. */
  lapseDue(nowMs: number): void;
  /** Lapses a hold before its time; nothing happens unless it is HELD. */
  lapse(holdId: string): void;
  /** When the next hold runs out; undefined if none is held. */
  nextExpiryMs(): number | undefined;
  /** All holds, in the order in which they were made. */
  holds(): SimulatedHold[];
  close(): void;
}

/** A row of the file, under the column names that files have had from the first: there are no migrations of them. */
interface HoldRow {
  readonly id: number;
  readonly hold_id: string;
  readonly escrow_id: string;
  readonly standing: Exclude<PaymentStatus, 'ABSENT'>;
  readonly amount: number | null;
  readonly currency: string | null;
  readonly expires_at_ms: number | null;
}

interface OperationRow {
  readonly hold_id: string;
  readonly kind: string;
  readonly attempts: number;
  readonly came_to: string | null;
}

/** Opens the books in a folder; see openLedgerFile. */
export function openLedger(dataDir: string, newSecret: () => Uint8Array): Ledger {
  const { connection, secret } = openLedgerFile(dataDir, newSecret);
  const outbox = createOutbox(connection);
  const together = <T>(changes: () => T): T => connection.transaction(changes).immediate();

  const selectHold = connection.prepare<[string], HoldRow>('SELECT * FROM hold WHERE hold_id = ?');
  const selectHolds = connection.prepare<[], HoldRow>('SELECT * FROM hold ORDER BY id');
  const insertHold = connection.prepare(
    `INSERT INTO hold (hold_id, escrow_id, standing, amount, currency, expires_at_ms)
     VALUES (?, ?, ?, ?, ?, ?)`,
  );
  const updateHold = connection.prepare('UPDATE hold SET standing = ? WHERE hold_id = ?');
  const isDue = `standing = 'HELD' AND expires_at_ms <= ?`;
  const selectDue = connection
    .prepare<[number], string>(`SELECT hold_id FROM hold WHERE ${isDue} ORDER BY expires_at_ms, id`)
    .pluck();
  const selectNextExpiry = connection
    .prepare<[], number>(
      `SELECT expires_at_ms FROM hold WHERE standing = 'HELD' ORDER BY expires_at_ms LIMIT 1`,
    )
    .pluck();
  const upsertOperation = connection.prepare<[string, string, string], OperationRow>(
    `INSERT INTO operation (operation_id, hold_id, kind, attempts) VALUES (?, ?, ?, 1)
     ON CONFLICT DO UPDATE SET attempts = attempts + 1 RETURNING *`,
  );
  const selectOutcome = connection
    .prepare<[string], string | null>('SELECT came_to FROM operation WHERE operation_id = ?')
    .pluck();
  const updateOutcome = connection.prepare('UPDATE operation SET came_to = ? WHERE operation_id = ?');

  function move(holdId: string, status: PaymentStatus): void {
    updateHold.run(status, holdId);
    outbox.add(holdId);
  }
  function make(order: PaymentInstruction, status: PaymentStatus, expiresAtMs: number): void {
    const terms = status === 'VOID' ? [null, null, null] : [order.amount, order.currency, expiresAtMs];
    insertHold.run(order.holdId, order.escrowId, status, ...terms);
    outbox.add(order.holdId);
  }
  function lapseDue(nowMs: number): void {
    for (const holdId of selectDue.all(nowMs)) move(holdId, 'LAPSED');
  }
  function find(holdId: string): PaymentSnapshot {
    const row = selectHold.get(holdId);
    return row === undefined ? { status: 'ABSENT' } : answerOf(row);
  }
  function carryOut(
    instruction: PaymentInstruction,
    { verdict, holdLastsMs }: Treatment,
    nowMs: number,
  ): PaymentSnapshot {
    const { instructionId, holdId, kind } = instruction;
    lapseDue(nowMs);
    if (typeof selectOutcome.get(instructionId) === 'string') return find(holdId);
    const before = find(holdId).status;
    const after = statusAfter(kind, before, verdict);
    if (before === 'ABSENT' && after !== 'ABSENT') make(instruction, after, nowMs + holdLastsMs);
    else if (before !== after) move(holdId, after);
    updateOutcome.run(after, instructionId);
    return find(holdId);
  }

  return {
    secret,
    outbox,
    together,
    countAttempt: ({ instructionId, holdId, kind }) =>
      together(() => {
        const row = upsertOperation.get(instructionId, holdId, kind);
        if (row?.hold_id !== holdId || row.kind !== kind) {
          throw new Error(
            `${instructionId} is the id of another instruction: ${row?.kind} of ${row?.hold_id}.`,
          );
        }
        return row.attempts;
      }),
    carryOut: (...terms) => together(() => carryOut(...terms)),
    find: (holdId, nowMs) =>
      together(() => {
        lapseDue(nowMs);
        return find(holdId);
      }),
    lapseDue: (nowMs) => together(() => lapseDue(nowMs)),
    lapse: (holdId) =>
      together(() => {
        if (find(holdId).status === 'HELD') move(holdId, 'LAPSED');
      }),
    nextExpiryMs: () => selectNextExpiry.get() ?? undefined,
    holds: () => selectHolds.all().map(holdOf),
    close: () => connection.close(),
  };
}

function answerOf({ id, standing: status, amount, currency }: HoldRow): PaymentSnapshot {
  if (amount === null || currency === null) return { status };
  return { status, amount: BigInt(amount), currency, reference: `sim-hold-${id}` };
}

function holdOf(row: HoldRow): SimulatedHold {
  return {
    holdId: row.hold_id,
    escrowId: row.escrow_id,
    status: row.standing,
    amount: row.amount === null ? undefined : BigInt(row.amount),
    currency: row.currency ?? undefined,
    expiresAtMs: row.expires_at_ms ?? undefined,
  };
}
