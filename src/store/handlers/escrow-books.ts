import { and, asc, desc, eq, type InferSelectModel, inArray, sql } from 'drizzle-orm';
import {
  type AfterPayout,
  type Escrow,
  type EscrowChange,
  type EscrowState,
  escrowNotFound,
  type InstructionKind,
  type InstructionStatus,
  isAfterPayout,
  pendingOf,
} from '../../domain/escrow.ts';
import type { PartyRole } from '../../domain/escrow-terms.ts';
import { type EventType, payoutEvent } from '../../domain/event.ts';
import type { OpenInstruction } from '../../domain/order-update.ts';
import type { ProviderIds } from '../../domain/party.ts';
import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { ResolvableOrder } from '../../domain/resolution.ts';
import { escrowChange, escrowInstruction } from '../engine/schema.ts';
import {
  type Database,
  named,
  placeholders,
  placeholdersFor,
  prepare,
  prepareMapped,
} from '../engine/statement.ts';
import type { Instruction } from '../escrow-commands.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { EscrowCase, OrderUpdate } from '../reconciliation-commands.ts';
import { createEscrowRows, type EscrowRow, type EscrowRows } from './escrow-rows.ts';
import type { PartyRegister } from './parties.ts';
import type { Parts } from './parts.ts';

/** Orders with their instructions, history, provenance records and parties. */
export type EscrowBooks = ReturnType<typeof createEscrowBooks>;

export function createEscrowBooks(parts: Parts, parties: PartyRegister) {
  const { database } = parts;
  const history = createEscrowHistory(database);
  const instructions = createInstructionLedger(database);
  const rows = createEscrowRows(database);

  async function toEscrow(row: EscrowRow): Promise<Escrow> {
    const { escrowId, filingNo, type, amount, buyerId, sellerId, state, timestamp, caller } = row;
    const { holdExpiresAtS, nextActionUrl: url, nextActionUntilMs: untilMs } = row;
    const pending = pendingOf(await instructions.lastOpenOf(row.id));
    // Once the order is cancelled, the buyer has nothing to do.
    const awaitsBuyer = pending === 'FREEZE' && url !== null && untilMs !== null;
    return {
      ...{ escrowId, filingNo, type, amount, buyerId, sellerId, state, timestamp, caller },
      pending,
      holdExpiresAtMs: state === 'FROZEN' && holdExpiresAtS !== null ? holdExpiresAtS * 1_000 : undefined,
      nextAction: awaitsBuyer ? { url, untilMs } : undefined,
      history: await history.of(row.id),
    };
  }

  /** The row of an order of `owner`, or of any caller if that is undefined. */
  async function findRow(id: string, owner: number | undefined): Promise<EscrowRow | undefined> {
    const row = await rows.find(id);
    return owner === undefined || row?.callerId === owner ? row : undefined;
  }

  /** Likewise. Throws ESCROW_NOT_FOUND. */
  async function requireRow(id: string, owner?: number): Promise<EscrowRow> {
    const row = await findRow(id, owner);
    if (row === undefined) throw escrowNotFound();
    return row;
  }

  async function findInstruction(instructionId: string): Promise<Instruction | undefined> {
    const instruction = await instructions.find(instructionId);
    const row = instruction && (await rows.byId(instruction.orderId));
    if (instruction === undefined || row === undefined) return undefined;
    const { kind, status, reason } = instruction;
    return { instructionId, kind, status, reason: reason ?? undefined, order: await toEscrow(row) };
  }

  /** Likewise. Throws if there is none. */
  async function requireInstruction(instructionId: string): Promise<Instruction> {
    const instruction = await findInstruction(instructionId);
    if (instruction === undefined) throw new Error(`There is no instruction ${instructionId}.`);
    return instruction;
  }

  /** The provider ids of a party. Orders without registered parties use the current registration. */
  const providerIdsOf = (
    row: EscrowRow,
    role: PartyRole,
    id: number | null,
    partyId: string,
  ): Promise<ProviderIds | undefined> =>
    id === null ? parties.providerIdsForFiling(row.filingNo, role, partyId) : parties.providerIdsOf(id);

  async function toCase(row: EscrowRow): Promise<EscrowCase> {
    const { instructionId: holdId, preparedAtMs: openedAtMs } = await instructions.freezeOf(row.id);
    return {
      order: await toEscrow(row),
      holdId,
      openedAtMs,
      reference: row.reference ?? undefined,
      buyer: await providerIdsOf(row, 'BUYER', row.buyerPartyId, row.buyerId),
      seller: await providerIdsOf(row, 'SELLER', row.sellerPartyId, row.sellerId),
      failedAttempts: row.failedAttempts,
      review: row.review ?? undefined,
      accepted: row.accepted ? foundOf(row) : undefined,
      notificationCount: row.notificationCount,
      open: await instructions.openOf(row.id),
      lookUpAtMs: row.lookUpAtMs ?? undefined,
    };
  }

  return {
    ...createStateChanges(parts, rows, history),
    ...{ rows, instructions, history, toEscrow, toCase },
    ...{ findRow, requireRow, findInstruction, requireInstruction },
    /** The open RELEASE, REFUND or CANCEL of an order; the last one, if one replaced another. */
    resolutionOf: async (orderId: number) => {
      const open = await instructions.openOf(orderId);
      return open.findLast(({ kind }) => kind !== 'FREEZE');
    },
  };
}

/** What changes the state of an order and adds the event. */
function createStateChanges(
  { provenance, outbox }: Parts,
  rows: EscrowRows,
  history: ReturnType<typeof createEscrowHistory>,
) {
  function addEvent(
    type: EventType,
    { callerId, escrowId, filingNo }: EscrowRow,
    state: EscrowState,
    atMs: number,
  ) {
    outbox.add({ type, callerId, atMs, filingNo, escrowId, state });
  }

  return {
    /**
     * Appends a new state to an order's history, with the TRANSFER record for RELEASED, and adds the event. `byOperator` marks a
     * state that an operator confirmed. Runs inside an effect.
     */
    moved: async (row: EscrowRow, to: EscrowState, at: BusinessTime, byOperator = false): Promise<void> => {
      await history.append(row.id, to, at, { byOperator });
      if (to !== 'UNPAID') addEvent(stateEvents[to], row, to, at.atMs);
      if (to === 'RELEASED') await provenance.appendTransfer(row.filingNo, at);
    },
    /** Records a change of a payment that was paid out, and adds the event. */
    payoutChanged: async (
      row: EscrowRow,
      to: EscrowState,
      at: BusinessTime,
      now: AfterPayout,
    ): Promise<void> => {
      const before = (await history.of(row.id)).findLast(isAfterPayout)?.payment ?? 'PAID_OUT';
      await history.append(row.id, to, at, now);
      addEvent(payoutEvent(before, now.payment), row, to, at.atMs);
    },
    /** Marks an order for review, and adds the event unless it was marked already. `state` is its state after that. */
    stop: async (
      row: EscrowRow,
      review: NonNullable<OrderUpdate['review']>,
      state: EscrowState,
      atMs: number,
    ): Promise<void> => {
      await rows.stop(row.id, review);
      if (row.review === null) addEvent('escrow.in_review', row, state, atMs);
    },
  };
}

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

/**
 * Whether an instruction of an order was sent and its response is not recorded. The buyer acts on a FREEZE that was answered with
 * a next action.
 */
export const isUnderWay = (
  { nextActionUrl }: EscrowRow,
  open: readonly Pick<OpenInstruction, 'kind' | 'status'>[],
): boolean =>
  open.some(({ kind, status }) => status === 'SENT' && (kind !== 'FREEZE' || nextActionUrl === null));

/** An order as the rules in `domain/resolution.ts` take it. */
export const resolvable = (row: EscrowRow, underWay: InstructionRow | undefined): ResolvableOrder => ({
  escrowId: row.escrowId,
  state: row.state,
  underWay: underWay?.kind,
  isStopped: row.review !== null,
});

type InstructionRow = Readonly<InferSelectModel<typeof escrowInstruction>>;

// Literals, so that SQLite can use the partial index.
const isOpen = sql`${escrowInstruction.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`;
const isThis = eq(escrowInstruction.instructionId, sql.placeholder('instructionId'));
const ofOrder = eq(escrowInstruction.orderId, sql.placeholder('orderId'));

/** The instructions. All methods run inside an effect. */
function createInstructionLedger(database: Database) {
  const select = () => database.select().from(escrowInstruction).$dynamic();
  const byId = prepareMapped(select().where(isThis));
  const freeze = prepareMapped(select().where(and(ofOrder, sql`${escrowInstruction.kind} = 'FREEZE'`)));
  const open = prepareMapped(select().where(and(ofOrder, isOpen)).orderBy(asc(escrowInstruction.id)));
  const ended = (kinds: InstructionKind[], status: InstructionStatus) =>
    prepareMapped(
      select()
        .where(and(ofOrder, inArray(escrowInstruction.kind, kinds), eq(escrowInstruction.status, status)))
        .limit(1),
    );
  const paid = ended(['RELEASE', 'REFUND'], 'CONFIRMED');
  const declinedReturn = ended(['REFUND', 'CANCEL'], 'DECLINED');
  const { lastOpen, insert, move, leaveOpen } = prepare(database, {
    lastOpen: database
      .select({ kind: escrowInstruction.kind })
      .from(escrowInstruction)
      .where(and(ofOrder, isOpen))
      .orderBy(desc(escrowInstruction.id))
      .limit(1),
    insert: database
      .insert(escrowInstruction)
      .values({ ...placeholdersFor(escrowInstruction, 'id', 'status', 'reason'), status: 'PREPARED' }),
    move: database.update(escrowInstruction).set(placeholders('status', 'reason')).where(and(isThis, isOpen)),
    leaveOpen: database
      .update(escrowInstruction)
      .set({ status: 'UNKNOWN' })
      .where(and(ofOrder, eq(escrowInstruction.status, 'SENT'))),
  });
  return {
    /** Inserts an instruction as PREPARED. */
    prepare: (orderId: number, kind: InstructionKind, instructionId: string, preparedAtMs: number) =>
      insert.run({ instructionId, orderId, kind, preparedAtMs }),
    /** Changes the status of an open instruction. Returns false if it is not open. */
    move: async (
      instructionId: string,
      status: InstructionStatus,
      reason: string | null = null,
    ): Promise<boolean> => (await move.run({ instructionId, status, reason })) === 1,
    /** Sets all SENT instructions of an order to UNKNOWN. */
    leaveOpen: (orderId: number) => leaveOpen.run({ orderId }),
    find: (instructionId: string) => byId.get({ instructionId }),
    freezeOf: async (orderId: number): Promise<InstructionRow> => {
      const row = await freeze.get({ orderId });
      if (row === undefined) throw new Error(`Order ${orderId} has no FREEZE.`);
      return row;
    },
    /** Oldest first. */
    openOf: async (orderId: number) => (await open.all({ orderId })) as (InstructionRow & OpenInstruction)[],
    /** The kind of the last open one. */
    lastOpenOf: async (orderId: number): Promise<InstructionKind | undefined> =>
      (await lastOpen.get({ orderId }))?.kind,
    /** Whether the money of an order was paid, out or back. */
    hasPaid: async (orderId: number) => (await paid.get({ orderId })) !== undefined,
    /** Whether a REFUND or CANCEL was declined. */
    hasDeclinedReturn: async (orderId: number) => (await declinedReturn.get({ orderId })) !== undefined,
    /** The orders that have an open instruction, as a subquery. */
    ordersWithOpen: () =>
      database.select({ orderId: escrowInstruction.orderId }).from(escrowInstruction).where(isOpen),
  };
}

function createEscrowHistory(database: Database) {
  const ofOrder = eq(escrowChange.orderId, sql.placeholder('orderId'));
  const { state, at, payment, paymentAmount, byOperator } = escrowChange;
  const { insertNext, select } = prepare(database, {
    insertNext: database.insert(escrowChange).values({
      ...placeholdersFor(escrowChange, 'position'),
      position: sql`(SELECT count(*) + 1 FROM ${escrowChange} WHERE ${ofOrder})`,
    }),
    select: database
      .select(named({ state, at, payment, paymentAmount, byOperator }))
      .from(escrowChange)
      .where(ofOrder)
      .orderBy(asc(escrowChange.position)),
  });
  return {
    /** Appends a state or a provider status. `byOperator` marks a state that an operator confirmed. Runs inside an effect. */
    append: async (
      orderId: number,
      state: EscrowState,
      { atMs, timestamp: at }: BusinessTime,
      more: Partial<AfterPayout> & { readonly byOperator?: boolean } = {},
    ): Promise<void> => {
      const changedAtS = Math.floor(atMs / 1000);
      const { payment = null, amount: paymentAmount = null, byOperator = false } = more;
      const values = { orderId, state, at, changedAtS, payment, paymentAmount };
      await insertNext.run({ ...values, byOperator: Number(byOperator) });
    },
    /** The changes of an order, oldest first. */
    of: async (orderId: number): Promise<EscrowChange[]> => {
      const changes = await select.all({ orderId });
      return changes.map(({ state, at, payment, paymentAmount: amount, byOperator }) =>
        payment === null
          ? { state, at, ...(byOperator === 1 && { byOperator: true }) }
          : { state, at, payment, ...(amount !== null && { amount: BigInt(amount) }) },
      );
    },
  };
}
