import type { PaymentSnapshot, PaymentStatus } from '../../domain/payment.ts';
import type { PaymentInstruction } from '../provider.ts';
import type { Course, MoneyEvent } from './course.ts';
import { createHoldRows, type SimulatedHold } from './hold-rows.ts';
import { openLedgerFile } from './ledger-file.ts';
import { createOutbox, type Outbox } from './outbox.ts';
import { createPlannedEvents } from './planned-events.ts';
import { payoutStatus, type RefusalReason, refusals, statusAfter, type Verdict } from './rules.ts';

/** How an instruction is met. */
export interface Treatment {
  readonly verdict: Verdict;
  /** How long a hold lasts that is made now, in milliseconds; Infinity for ever. */
  readonly holdLastsMs: number;
  readonly course?: Course;
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
  /** Whether an instruction has arrived under this id. */
  hasArrived(instructionId: string): boolean;
  /** Carries a counted instruction out unless it already was, and tells where the money is. */
  carryOut(instruction: PaymentInstruction, treatment: Treatment, nowMs: number): PaymentSnapshot;
  /** Where the money of an order is. */
  find(holdId: string, nowMs: number): PaymentSnapshot;
  /** Has everything happened whose time has come: holds run out, buyers act, what was paid out goes back. */
  catchUp(nowMs: number): void;
  /** Lapses a hold before its time; nothing happens unless it is HELD. */
  lapse(holdId: string): void;
  /** Has an event happened now; nothing happens where the money is not where that could be. */
  befall(holdId: string, event: MoneyEvent, nowMs: number): void;
  /** When the next thing happens by itself; undefined if nothing does. */
  nextDueMs(): number | undefined;
  /** All holds, in the order in which they were made. */
  holds(): SimulatedHold[];
  close(): void;
}

type BuyerEvent = Extract<MoneyEvent, 'BUYER_ACTS' | 'BUYER_FAILS'>;

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
  const rows = createHoldRows(connection);
  const planned = createPlannedEvents(connection);
  const together = <T>(changes: () => T): T => connection.transaction(changes).immediate();

  const upsertOperation = connection.prepare<[string, string, string], OperationRow>(
    `INSERT INTO operation (operation_id, hold_id, kind, attempts) VALUES (?, ?, ?, 1)
     ON CONFLICT DO UPDATE SET attempts = attempts + 1 RETURNING *`,
  );
  const selectOutcome = connection
    .prepare<[string], string | null>('SELECT came_to FROM operation WHERE operation_id = ?')
    .pluck();
  const updateOutcome = connection.prepare('UPDATE operation SET came_to = ? WHERE operation_id = ?');
  const insertRefusal = connection.prepare(
    'INSERT INTO apiError (operation_id, hold_id, kind, why) VALUES (?, ?, ?, ?)',
  );
  const selectRefusal = connection
    .prepare<[string], RefusalReason>('SELECT why FROM apiError WHERE operation_id = ?')
    .pluck();
  const selectRefusalOfHold = connection
    .prepare<[string], RefusalReason>(`SELECT why FROM apiError WHERE hold_id = ? AND kind = 'FREEZE'`)
    .pluck();

  const hasArrived = (instructionId: string) => typeof selectOutcome.get(instructionId) === 'string';
  const statusOf = (holdId: string): PaymentStatus => rows.find(holdId)?.status ?? 'ABSENT';

  /** Where the money of an order is, and why there never was any, if it is known. */
  function find(holdId: string): PaymentSnapshot {
    const payment = rows.snapshot(holdId);
    return payment.status === 'VOID' ? withReason(payment, selectRefusalOfHold.get(holdId)) : payment;
  }
  function makeHold(order: Omit<PaymentInstruction, 'kind'>, treatment: Treatment, nowMs: number): void {
    const { holdLastsMs: lastsMs, course = {} } = treatment;
    const { holdId, escrowId, currency, amount: agreed } = order;
    const hold = { holdId, escrowId, amount: course.amount ?? agreed, currency };
    if (course.buyer !== undefined) {
      rows.await({ ...hold, lastsMs });
      planned.add(holdId, course.buyer, nowMs);
    } else rows.make(hold, course.contradicts ? 'PAID_OUT' : 'HELD', nowMs + lastsMs);
  }
  /** Moves the money of an order on from where it is. */
  function move(instruction: PaymentInstruction, to: PaymentStatus, treatment: Treatment, nowMs: number) {
    const { holdId } = instruction;
    const from = statusOf(holdId);
    const { course = {} } = treatment;
    if (to === 'HELD') makeHold(instruction, treatment, nowMs);
    else if (from === 'HELD' && course.contradicts) rows.forget(holdId);
    else if (to === 'VOID') {
      rows.takeAwaited(holdId);
      rows.bury(instruction);
    } else rows.move(holdId, to as 'PAID_OUT' | 'RETURNED');
    if (to === 'PAID_OUT') planned.add(holdId, course.afterPayout ?? [], nowMs);
    outbox.add(holdId);
  }
  function carryOut(instruction: PaymentInstruction, treatment: Treatment, nowMs: number): PaymentSnapshot {
    const { instructionId, holdId, kind } = instruction;
    catchUp(nowMs);
    if (!hasArrived(instructionId)) {
      const { verdict } = treatment;
      const before = statusOf(holdId);
      const after = statusAfter(kind, before, verdict);
      if (after !== before) move(instruction, after, treatment, nowMs);
      const isRefused = after !== statusAfter(kind, before, 'CONSENTED');
      if (isRefused && verdict !== 'CONSENTED') insertRefusal.run(instructionId, holdId, kind, verdict);
      updateOutcome.run(statusOf(holdId), instructionId);
    }
    const payment = find(holdId);
    const isWhereItWasLeft = selectOutcome.get(instructionId) === payment.status;
    return isWhereItWasLeft ? withReason(payment, selectRefusal.get(instructionId)) : payment;
  }
  function catchUp(nowMs: number): void {
    for (const { holdId, event } of planned.takeDue(nowMs)) befall(holdId, event, nowMs);
    for (const holdId of rows.due(nowMs)) lapse(holdId);
  }
  function lapse(holdId: string): void {
    if (statusOf(holdId) !== 'HELD') return;
    rows.move(holdId, 'LAPSED');
    outbox.add(holdId);
  }
  function befall(holdId: string, event: MoneyEvent, nowMs: number): void {
    const isDone =
      event === 'BUYER_ACTS' || event === 'BUYER_FAILS'
        ? endWaiting(holdId, event, nowMs)
        : moveAfterPayout(holdId, event);
    if (isDone) outbox.add(holdId);
  }
  function endWaiting(holdId: string, event: BuyerEvent, nowMs: number): boolean {
    const hold = rows.takeAwaited(holdId);
    if (hold === undefined) return false;
    if (event === 'BUYER_ACTS') rows.make(hold, 'HELD', nowMs + hold.lastsMs);
    else {
      rows.bury(hold);
      insertRefusal.run(`the buyer of ${holdId}`, holdId, 'FREEZE', event);
    }
    return true;
  }
  function moveAfterPayout(holdId: string, event: Exclude<MoneyEvent, BuyerEvent>): boolean {
    const payout = rows.payoutOf(holdId);
    if (payout === undefined) return false;
    const { paid, left } = payout;
    const isDisputed = statusOf(holdId) === 'DISPUTED';
    if (left === 0n || isDisputed !== (event === 'DISPUTE_WON' || event === 'DISPUTE_LOST')) return false;
    const kept = {
      RETURN_PART: left / 2n,
      RETURN_ALL: 0n,
      DISPUTE: left,
      DISPUTE_WON: left,
      DISPUTE_LOST: 0n,
    };
    rows.noteAfterPayout(
      holdId,
      event === 'DISPUTE' ? 'DISPUTED' : payoutStatus(paid, kept[event]),
      kept[event],
    );
    return true;
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
    hasArrived,
    carryOut: (...terms) => together(() => carryOut(...terms)),
    find: (holdId, nowMs) =>
      together(() => {
        catchUp(nowMs);
        return find(holdId);
      }),
    catchUp: (nowMs) => together(() => catchUp(nowMs)),
    lapse: (holdId) => together(() => lapse(holdId)),
    befall: (...terms) => together(() => befall(...terms)),
    nextDueMs: () => {
      const times = [rows.nextExpiryMs(), planned.nextMs()].filter((time) => time !== undefined);
      return times.length === 0 ? undefined : Math.min(...times);
    },
    holds: rows.all,
    close: () => connection.close(),
  };
}

function withReason(payment: PaymentSnapshot, why: RefusalReason | undefined): PaymentSnapshot {
  return why === undefined ? payment : { ...payment, declined: refusals[why] };
}
