import {
  type AfterPayout,
  type Escrow,
  type EscrowState,
  escrowNotFound,
  isAfterPayout,
  pendingOf,
} from '../../domain/escrow.ts';
import type { PartyRole } from '../../domain/escrow-terms.ts';
import { type EventType, payoutEvent } from '../../domain/event.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { ResolvableOrder } from '../../domain/resolution.ts';
import type { Instruction } from '../escrow-commands.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { EscrowCase } from '../reconciliation-commands.ts';
import type { Database } from './connection.ts';
import { createEscrowHistory, type EscrowHistory } from './escrow-history.ts';
import { createEscrowRows, type EscrowRow, type EscrowRows, type StoppedRow } from './escrow-rows.ts';
import type { EvidenceLog } from './evidence-log.ts';
import { createInstructionLedger, type InstructionLedger, type InstructionRow } from './instructions.ts';
import type { Outbox } from './outbox.ts';
import type { PartyRegister } from './parties.ts';
import { createProvenanceRecords, type ProvenanceRecords } from './provenance.ts';
import type { RecordCheck } from './record-check.ts';

/** Orders with their instructions, history, provenance records and parties. */
export interface EscrowBooks {
  readonly rows: EscrowRows;
  readonly instructions: InstructionLedger;
  readonly history: EscrowHistory;
  readonly provenance: ProvenanceRecords;
  readonly parties: PartyRegister;
  toEscrow(row: EscrowRow): Escrow;
  toCase(row: EscrowRow): EscrowCase;
  /**
   * Appends a new state to an order's history, with the TRANSFER record for RELEASED, and adds the event. `byOperator` marks a
   * state that an operator confirmed. Runs inside an effect.
   */
  moved(row: EscrowRow, to: EscrowState, at: BusinessTime, byOperator?: boolean): void;
  /** Records a change of a payment that was paid out, and adds the event. */
  payoutChanged(row: EscrowRow, to: EscrowState, at: BusinessTime, now: AfterPayout): void;
  /** Marks an order for review, and adds the event unless it was marked already. `state` is its state after that. */
  stop(row: EscrowRow, stop: Omit<StoppedRow, 'id'>, state: EscrowState, atMs: number): void;
  /** The row of an order of `owner`, or of any caller if that is undefined. */
  findRow(escrowId: string, owner: number | undefined): EscrowRow | undefined;
  /** Likewise. Throws ESCROW_NOT_FOUND. */
  requireRow(escrowId: string, owner?: number): EscrowRow;
  findInstruction(instructionId: string): Instruction | undefined;
  /** Likewise. Throws if there is none. */
  requireInstruction(instructionId: string): Instruction;
  /** The open RELEASE, REFUND or CANCEL of an order; the last one, if one replaced another. */
  resolutionOf(orderId: number): InstructionRow | undefined;
}

export function createEscrowBooks(
  database: Database,
  parties: PartyRegister,
  log: EvidenceLog,
  outbox: Outbox,
  check: RecordCheck,
): EscrowBooks {
  const history = createEscrowHistory(database);
  const instructions = createInstructionLedger(database);
  const rows = createEscrowRows(database);
  const provenance = createProvenanceRecords(database, log, outbox, check);

  function toEscrow(row: EscrowRow): Escrow {
    const { escrowId, filingNo, type, amount, buyerId, sellerId, state, timestamp, caller } = row;
    const { holdExpiresAtS, nextActionUrl: url, nextActionUntilMs: untilMs } = row;
    const pending = pendingOf(instructions.lastOpenOf(row.id));
    // Once the order is cancelled, the buyer has nothing to do.
    const awaitsBuyer = pending === 'FREEZE' && url !== null && untilMs !== null;
    return {
      ...{ escrowId, filingNo, type, amount, buyerId, sellerId, state, timestamp, caller },
      pending,
      holdExpiresAtMs: state === 'FROZEN' && holdExpiresAtS !== null ? holdExpiresAtS * 1_000 : undefined,
      nextAction: awaitsBuyer ? { url, untilMs } : undefined,
      history: history.of(row.id),
    };
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

  function findInstruction(instructionId: string): Instruction | undefined {
    const instruction = instructions.find(instructionId);
    const row = instruction && rows.byId(instruction.orderId);
    if (instruction === undefined || row === undefined) return undefined;
    const { kind, status, reason } = instruction;
    return { instructionId, kind, status, reason: reason ?? undefined, order: toEscrow(row) };
  }

  function requireInstruction(instructionId: string): Instruction {
    const instruction = findInstruction(instructionId);
    if (instruction === undefined) throw new Error(`There is no instruction ${instructionId}.`);
    return instruction;
  }

  /** The provider ids of a party. Orders without registered parties use the current registration. */
  const providerIdsOf = (row: EscrowRow, role: PartyRole, id: number | null, partyId: string) =>
    id === null ? parties.providerIdsForFiling(row.filingNo, role, partyId) : parties.providerIdsOf(id);

  function toCase(row: EscrowRow): EscrowCase {
    const { instructionId: holdId, preparedAtMs: openedAtMs } = instructions.freezeOf(row.id);
    return {
      order: toEscrow(row),
      holdId,
      openedAtMs,
      reference: row.reference ?? undefined,
      buyer: providerIdsOf(row, 'BUYER', row.buyerPartyId, row.buyerId),
      seller: providerIdsOf(row, 'SELLER', row.sellerPartyId, row.sellerId),
      failedAttempts: row.failedAttempts,
      review: row.review ?? undefined,
      accepted: row.accepted ? foundOf(row) : undefined,
      notificationCount: row.notificationCount,
      open: instructions.openOf(row.id),
    };
  }

  function addEvent(
    type: EventType,
    { callerId, escrowId, filingNo }: EscrowRow,
    state: EscrowState,
    atMs: number,
  ) {
    outbox.add({ type, callerId, atMs, filingNo, escrowId, state });
  }

  return {
    moved: (row, to, at, byOperator = false) => {
      history.append(row.id, to, at, { byOperator });
      if (to !== 'UNPAID') addEvent(stateEvents[to], row, to, at.atMs);
      if (to === 'RELEASED') provenance.appendTransfer(row.filingNo, at);
    },
    payoutChanged: (row, to, at, now) => {
      const before = history.of(row.id).findLast(isAfterPayout)?.payment ?? 'PAID_OUT';
      history.append(row.id, to, at, now);
      addEvent(payoutEvent(before, now.payment), row, to, at.atMs);
    },
    stop: (row, stop, state, atMs) => {
      rows.stop({ ...stop, id: row.id });
      if (row.review === null) addEvent('escrow.in_review', row, state, atMs);
    },
    ...{ rows, instructions, history, provenance, parties, toEscrow, toCase },
    ...{ findRow, requireRow, findInstruction, requireInstruction },
    resolutionOf: (orderId) => instructions.openOf(orderId).findLast(({ kind }) => kind !== 'FREEZE'),
  };
}

/** The event of each state. */
const stateEvents = {
  FROZEN: 'escrow.frozen',
  RELEASED: 'escrow.released',
  REFUNDED: 'escrow.refunded',
  CLOSED: 'escrow.closed',
} as const satisfies Record<Exclude<EscrowState, 'UNPAID'>, EventType>;

/** The provider status when an order last began to need a review. */
export function foundOf({ foundStatus, foundAmount, foundCurrency }: EscrowRow): PaymentSnapshot | undefined {
  if (foundStatus === null) return undefined;
  return {
    status: foundStatus,
    amount: foundAmount ?? undefined,
    currency: foundCurrency ?? undefined,
  };
}

/** An order as the rules in `domain/resolution.ts` take it. */
export const resolvable = (row: EscrowRow, underWay: InstructionRow | undefined): ResolvableOrder => ({
  escrowId: row.escrowId,
  state: row.state,
  underWay: underWay?.kind,
  isStopped: row.review !== null,
});
