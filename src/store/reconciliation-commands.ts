import type { Actor } from '../domain/audit-entry.ts';
import type { Escrow, EscrowState, InstructionKind, NextAction } from '../domain/escrow.ts';
import type { OpenInstruction, UpdatePlan } from '../domain/order-update.ts';
import type { ProviderIds } from '../domain/party.ts';
import type { PaymentSnapshot } from '../domain/payment.ts';
import type { Decision, OrderEnd } from '../domain/resolution.ts';
import type { Instruction } from './escrow-commands.ts';
import type { BusinessTime } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** How long a notification is remembered, in seconds: longer than any provider repeats it. */
export const notificationRetentionS = 2_592_000;

/** An order with everything that its reconciliation needs. */
export interface EscrowCase {
  readonly order: Escrow;
  /** The instruction id of its FREEZE, which names the hold at the provider. */
  readonly holdId: string;
  /** Unix milliseconds. */
  readonly openedAtMs: number;
  /** The provider's own name for the hold. */
  readonly reference: string | undefined;
  /**
   * The provider ids of buyer and seller, as registered when the order was opened, or now if none were registered then;
   * undefined if none are.
   */
  readonly buyer: ProviderIds | undefined;
  readonly seller: ProviderIds | undefined;
  /** Questions and instructions in a row that were left without an answer. */
  readonly failedAttempts: number;
  /** Why it needs a review by an operator; undefined if it does not. */
  readonly review: string | undefined;
  /** The provider status that an operator accepted; undefined if none. */
  readonly accepted: PaymentSnapshot | undefined;
  /** Notifications and operator decisions so far. */
  readonly notificationCount: number;
  /** Its open instructions, oldest first. */
  readonly open: readonly OpenInstruction[];
  /** When it is due, Unix milliseconds; undefined for never. */
  readonly lookUpAtMs: number | undefined;
}

/** The change of an order that follows from a provider status. */
export interface OrderUpdate extends Pick<UpdatePlan, 'to' | 'ended' | 'resetsAttempts' | 'afterPayout'> {
  readonly escrowId: string;
  readonly from: EscrowState;
  /** An instruction that has to be sent next. */
  readonly prepared: { readonly instructionId: string; readonly kind: InstructionKind } | undefined;
  readonly reference: string | undefined;
  /** Unix milliseconds; undefined keeps the stored value. */
  readonly holdExpiresAtMs: number | undefined;
  /** What the buyer has to do; undefined for nothing. */
  readonly nextAction: NextAction | undefined;
  /** Why an operator has to decide, and the provider status. The order is not due until then. */
  readonly review: { readonly why: string; readonly found: PaymentSnapshot | undefined } | undefined;
  /** EscrowCase.notificationCount at the time of the request. If it has grown since, the order is due at once. */
  readonly notificationCount: number;
  /** EscrowCase.lookUpAtMs at the time of the request. */
  readonly expectedLookUpAtMs: number | undefined;
  /** The number of changes in the history of the order at the time of the request. */
  readonly expectedChanges: number;
  /** Unix milliseconds; undefined for never. */
  readonly lookUpAtMs: number | undefined;
}

/** An order to reconcile, and the caller that opened it. */
export interface DueOrder {
  readonly escrowId: string;
  readonly callerId: number;
  /** EscrowCase.lookUpAtMs. */
  readonly lookUpAtMs: number;
}

/** Which cases to list. */
export interface CaseSelection {
  /** Undefined is any. */
  readonly state: EscrowState | undefined;
  /** Only orders that need a review. */
  readonly needsReview: boolean;
  /** Only the order with this id. */
  readonly escrowId?: string | undefined;
}

/**
 * The instructions to the provider and their results. The state of an order changes only by compare-and-swap. The same
 * transaction ends the instructions, appends to the history and, for RELEASED, adds the TRANSFER record.
 *
 * An instruction is under way from its RecordSent until its response is recorded, or until another instance takes it after
 * `lookUpAtMs`. Meanwhile notifications do not make its order due, and only the instance that sent it can change that time.
 */
export interface ReconciliationCommands {
  /** Returns an instruction and its order in their current state. */
  FindInstruction(command: { readonly instructionId: string }): Instruction | undefined;
  /**
   * Records that this instance is about to send an instruction, and returns true. Without a response the order is due at
   * `lookUpAtMs`. Returns false and changes nothing if the instruction has left `status`, if its order needs a review, or if the
   * instruction is SENT and the order is not due at `expectedLookUpAtMs`: then another instance has taken it.
   */
  RecordSent(command: {
    readonly instructionId: string;
    readonly status: OpenInstruction['status'];
    readonly expectedLookUpAtMs: number | undefined;
    readonly lookUpAtMs: number;
  }): boolean;
  /**
   * Records that the provider did not respond, and returns true. The order is due at `lookUpAtMs`, or at `nowMs` if it has had more
   * than `notificationCount` notifications. Returns false and changes nothing if an instruction is under way and the order is not
   * due at `expectedLookUpAtMs`.
   */
  RecordUnanswered(command: {
    readonly escrowId: string;
    readonly expectedLookUpAtMs: number | undefined;
    readonly lookUpAtMs: number;
    readonly notificationCount: number;
    readonly nowMs: number;
  }): boolean;
  /**
   * Applies an update and returns the new case. Returns undefined and changes nothing if the order has left `from`, would become
   * FROZEN although it was cancelled, needs a review and is not RELEASED, has an instruction under way and is not due at
   * `expectedLookUpAtMs`, or has an `afterPayout` and other than `expectedChanges` changes.
   */
  UpdateOrder(command: { readonly update: OrderUpdate; readonly at: BusinessTime }): EscrowCase | undefined;
  /** Returns an order to reconcile. */
  FindCase(command: { readonly escrowId: string }): EscrowCase | undefined;
  /**
   * Sets the provider that orders are reconciled with. Fails with ESCROW_STATE_CONFLICT while another provider has orders
   * that are due or need a review.
   */
  UseProvider(command: { readonly name: string }): undefined;
  /** Makes all orders with an open instruction due. */
  ResumeOpen(command: { readonly nowMs: number }): undefined;
  /**
   * Lists orders that are due: for each caller at most `perCaller`, oldest due time first. Orders due after `horizonMs`, which
   * a clock that was set back leaves, come last. At most `callers` callers, by id, starting after `after` and wrapping around.
   */
  ListDue(command: {
    /** Selects the orders whose last attempt failed, or all others. */
    readonly hasFailed: boolean;
    readonly nowMs: number;
    readonly horizonMs: number;
    /** A caller id; 0 starts with the first caller. */
    readonly after: number;
    readonly callers: number;
    readonly perCaller: number;
  }): readonly DueOrder[];
  /**
   * Lists one of `shares` parts, from 0, of the RELEASED orders with a history entry since `sinceMs` that is the release or
   * later. An order is always in the same part, and neighbours are in different ones.
   */
  ListReleased(command: {
    readonly share: number;
    readonly shares: number;
    readonly sinceMs: number;
  }): readonly string[];
  /**
   * Remembers a notification for `notificationRetentionS` and makes its order due. For a buyer, named by provider ids, these
   * are the orders opened since `openedSinceMs` that are RELEASED or have an open RELEASE. Returns whether it is new.
   */
  TakeNotification(command: {
    readonly eventId: string;
    readonly about:
      | { readonly holdId: string }
      | { readonly reference: string }
      | { readonly buyer: ProviderIds; readonly openedSinceMs: number };
    readonly nowMs: number;
  }): boolean;
  /**
   * Applies an operator's decision about an order that needs a review, with an audit entry. Fails with ESCROW_NOT_FOUND, and
   * with ESCROW_STATE_CONFLICT as `planDecision` says.
   */
  Decide(command: {
    readonly by: Actor;
    readonly escrowId: string;
    readonly decision: Decision;
    readonly instructionId: string;
    readonly nowMs: number;
  }): EscrowCase;
  /**
   * Closes an UNPAID order without a provider status and makes it due, so that a late hold is released to the buyer. Fails with
   * ESCROW_NOT_FOUND, and with ESCROW_STATE_CONFLICT as `errorToClose` says.
   */
  CloseOrder(command: {
    readonly by: Actor;
    readonly escrowId: string;
    readonly at: BusinessTime;
  }): EscrowCase;
  /**
   * Ends an order as an operator confirms, as `planEnd` says, with an audit entry. If the state changes, the history marks it
   * as confirmed by an operator, RELEASED adds the TRANSFER record, and the order is due once more. Fails with
   * ESCROW_NOT_FOUND, and with ESCROW_STATE_CONFLICT as `planEnd` says.
   */
  EndOrder(command: {
    readonly by: Actor;
    readonly escrowId: string;
    readonly end: OrderEnd;
    /** SHA-256 of the proof, 64 lower-case hexadecimal digits. */
    readonly evidence: string;
    readonly at: BusinessTime;
  }): EscrowCase;
  /** Lists orders, newest first. */
  ListCases(command: { readonly selection: CaseSelection; readonly page: PageQuery }): Page<EscrowCase>;
}
