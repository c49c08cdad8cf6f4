import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { EscrowState, InstructionKind, InstructionStatus, PayoutStatus } from '../../domain/escrow.ts';
import type { EscrowType } from '../../domain/escrow-terms.ts';
import type { PaymentStatus } from '../../domain/payment.ts';
import { caller, money, party } from './schema-callers.ts';
import { filing } from './schema-filings.ts';

/** Escrow orders; a filing has one at most that is UNPAID or FROZEN. */
export const escrow = sqliteTable(
  'escrow',
  {
    id: integer().primaryKey(),
    escrowId: text('escrow_id').notNull().unique(),
    filingNo: text('filing_no')
      .notNull()
      .references(() => filing.filingNo),
    callerId: integer('caller_id')
      .notNull()
      .references(() => caller.id),
    type: text().$type<EscrowType>().notNull(),
    amount: money().notNull(),
    buyerId: text('buyer_id').notNull(),
    sellerId: text('seller_id').notNull(),
    state: text().$type<EscrowState>().notNull(),
    timestamp: text().notNull(),
    /** The provider's id of its hold. */
    reference: text(),
    /** When to look it up at the provider next; null for never. */
    lookUpAtMs: integer('look_up_at_ms'),
    /** How many look-ups and instructions in a row got no response from the provider. */
    failedAttempts: integer('failed_attempts').notNull().default(0),
    /** Why an operator has to review the order; null if none has to. */
    review: text(),
    /** The provider status with which the last review began. */
    foundStatus: text('found_status').$type<PaymentStatus>(),
    foundAmount: money('found_amount'),
    foundCurrency: text('found_currency'),
    /** Whether an operator accepted it. */
    accepted: integer({ mode: 'boolean' }).notNull().default(false),
    /** How many notifications of the order and decisions of operators there were. */
    notificationCount: integer('notification_count').notNull().default(0),
    /** Buyer and seller, as registered when it was opened; null if the provider needs no parties. */
    buyerPartyId: integer('buyer_party_id').references(() => party.id),
    sellerPartyId: integer('seller_party_id').references(() => party.id),
    /** When the hold ends, Unix seconds; null if the provider does not say. */
    holdExpiresAtS: integer('hold_expires_at_s'),
    /** The URL where the buyer has to complete a step before the amount can be held; null if there is none. */
    nextActionUrl: text('next_action_url'),
    /** The deadline of that step, Unix milliseconds. */
    nextActionUntilMs: integer('next_action_until_ms'),
    /** The end of the hold in the last escrow.hold_expiring event, Unix seconds; null without one. */
    notifiedHoldEndS: integer('notified_hold_end_s'),
  },
  (table) => [
    index('escrow_by_caller').on(table.callerId),
    index('escrow_by_caller_and_state').on(table.callerId, table.state),
    index('escrow_by_filing').on(table.filingNo),
    index('escrow_by_state').on(table.state),
    index('escrow_by_look_up').on(table.lookUpAtMs).where(sql`${table.lookUpAtMs} IS NOT NULL`),
    index('escrow_due')
      .on(table.callerId, sql`(${table.failedAttempts} > 0)`, table.lookUpAtMs)
      .where(sql`${table.lookUpAtMs} IS NOT NULL`),
    index('escrow_by_reference').on(table.reference).where(sql`${table.reference} IS NOT NULL`),
    index('escrow_hold_end').on(table.holdExpiresAtS).where(sql`${table.state} = 'FROZEN'`),
    index('escrow_in_review').on(table.id).where(sql`${table.review} IS NOT NULL`),
    uniqueIndex('escrow_active').on(table.filingNo).where(sql`${table.state} IN ('UNPAID', 'FROZEN')`),
  ],
);

/**
 * Instructions to the payment provider, each written before it is given. An order has one FREEZE, one at most that
 * is open to pay out and one to give back, and one at most that paid.
 */
export const escrowInstruction = sqliteTable(
  'escrow_instruction',
  {
    id: integer().primaryKey(),
    /** The provider's idempotency key. */
    instructionId: text('instruction_id').notNull().unique(),
    orderId: integer('order_id')
      .notNull()
      .references(() => escrow.id),
    kind: text().$type<InstructionKind>().notNull(),
    status: text().$type<InstructionStatus>().notNull(),
    preparedAtMs: integer('prepared_at_ms').notNull(),
    /** Why the provider declined it, in words for the buyer; null if it did not decline it or gave no reason. */
    reason: text(),
  },
  (table) => [
    index('escrow_instruction_by_order').on(table.orderId),
    index('escrow_instruction_open')
      .on(table.orderId)
      .where(sql`${table.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`),
    uniqueIndex('escrow_freeze').on(table.orderId).where(sql`${table.kind} = 'FREEZE'`),
    uniqueIndex('escrow_release_open')
      .on(table.orderId)
      .where(sql`${table.kind} = 'RELEASE' AND ${table.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`),
    uniqueIndex('escrow_return_open')
      .on(table.orderId)
      .where(
        sql`${table.kind} IN ('REFUND', 'CANCEL') AND ${table.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`,
      ),
    uniqueIndex('escrow_resolution_paid')
      .on(table.orderId)
      .where(sql`${table.kind} IN ('RELEASE', 'REFUND') AND ${table.status} = 'CONFIRMED'`),
  ],
);

/** The states that an order has been in; triggers keep them from being changed. */
export const escrowChange = sqliteTable(
  'escrow_change',
  {
    orderId: integer('order_id')
      .notNull()
      .references(() => escrow.id),
    /** 1 is UNPAID. */
    position: integer().notNull(),
    state: text().$type<EscrowState>().notNull(),
    at: text().notNull(),
    changedAtS: integer('changed_at_s').notNull(),
    /** The status of money that was paid out, in a row about that; null in a row about a state. */
    payment: text().$type<PayoutStatus>(),
    /** How much of it the seller still has; null if that is all, nothing, or not known. */
    paymentAmount: money('payment_amount'),
    /** Whether an operator decided the state without the provider's confirmation. */
    byOperator: integer('by_operator', { mode: 'boolean' }).notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.orderId, table.position] })],
);

/** Notifications of the provider, each once. */
export const providerNotification = sqliteTable(
  'provider_notification',
  {
    eventId: text('event_id').primaryKey(),
    receivedAtS: integer('received_at_s').notNull(),
  },
  (table) => [index('provider_notification_by_age').on(table.receivedAtS)],
);
