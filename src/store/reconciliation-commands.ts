import type { Actor } from '../domain/audit-entry.ts';
import type { AfterPayout, Escrow, EscrowState, InstructionKind, NextAction } from '../domain/escrow.ts';
import type { EndedInstruction, OpenInstruction } from '../domain/order-update.ts';
import type { ProviderIds } from '../domain/party.ts';
import type { PaymentSnapshot } from '../domain/payment.ts';
import type { Decision, OrderEnd } from '../domain/resolution.ts';
import type { Instruction } from './escrow-commands.ts';
import type { BusinessTime } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** How long a notification is remembered, in seconds: longer than a provider repeats it. */
export const notificationRetentionS = 2_592_000;

/** An order with all that reconciling it needs. */
export interface EscrowCase {
  readonly order: Escrow;
  /** The instruction id of its FREEZE, by which the provider knows it. */
  readonly holdId: string;
  /** Unix milliseconds. */
  readonly openedAtMs: number;
  /** The provider's own name for the hold. */
  readonly reference: string | undefined;
  /**
   * The provider's names for who pays and for who is paid, as registered when the order was opened. Of an order from
   * before there were any, those of now; undefined where nobody is registered.
   */
  readonly buyer: ProviderIds | undefined;
  readonly seller: ProviderIds | undefined;
  /** Questions and instructions in a row that were left without an answer. */
  readonly failedAttempts: number;
  /** Why it waits for a person. */
  readonly review: string | undefined;
  /** What the provider said that a person accepted; undefined if none did. */
  readonly accepted: PaymentSnapshot | undefined;
  /** How many notifications have come about it, and decisions of a person with them. */
  readonly notificationCount: number;
  /** Its open instructions, oldest first. */
  readonly open: readonly OpenInstruction[];
}

/** What the provider's answer changes about an order. */
export interface OrderUpdate {
  readonly escrowId: string;
  readonly from: EscrowState;
  /** May be the same. */
  readonly to: EscrowState;
  /** Open instructions that it ends. */
  readonly ended: readonly EndedInstruction[];
  /** An instruction that it makes necessary. */
  readonly prepared: { readonly instructionId: string; readonly kind: InstructionKind } | undefined;
  readonly reference: string | undefined;
  /** Unix milliseconds; undefined if the provider does not say, and then what is known stays. */
  readonly holdExpiresAtMs: number | undefined;
  /** What the buyer has to do from now on; undefined for nothing. */
  readonly nextAction: NextAction | undefined;
  /** What is appended to the history besides the state. */
  readonly afterPayout: AfterPayout | undefined;
  /** Why a person has to look, and what the provider said, if anything; the order is not due until one decided. */
  readonly review: { readonly why: string; readonly found: PaymentSnapshot | undefined } | undefined;
  /** Whether the provider did as it was told, so that the next attempt is a first one. */
  readonly resetsAttempts: boolean;
  /** EscrowCase.notificationCount of when the provider was asked. If more have come since, the order is due at once. */
  readonly notificationCount: number;
  /** Unix milliseconds; undefined for never. */
  readonly lookUpAtMs: number | undefined;
}

/** An order that is due, and who opened it. */
export interface DueOrder {
  readonly escrowId: string;
  readonly callerId: number;
}

/** Which cases to list. */
export interface CaseSelection {
  /** Undefined is any. */
  readonly state: EscrowState | undefined;
  /** Only those that wait for a person. */
  readonly needsReview: boolean;
}

/**
 * The ledger of what the provider was told, and what it said. The state of an order changes by compare-and-swap
 * alone, and with each change go the end of the instructions that it answers, its row of history and, for RELEASED, the
 * TRANSFER record: all of it or nothing.
 */
export interface ReconciliationCommands {
  /** An instruction and its order as they are now. */
  FindInstruction: {
    readonly takes: { readonly instructionId: string };
    readonly gives: Instruction | undefined;
  };
  /** Notes that an open instruction is being sent; unless it is answered before, the order is due at `lookUpAtMs`. */
  NoteSent: {
    readonly takes: { readonly instructionId: string; readonly lookUpAtMs: number };
    readonly gives: undefined;
  };
  /**
   * Notes that the provider did not answer; the order is due again at `lookUpAtMs`, or earlier if notifications
   * have come since it had so many `notificationCount`.
   */
  NoteUnanswered: {
    readonly takes: {
      readonly escrowId: string;
      readonly lookUpAtMs: number;
      readonly notificationCount: number;
    };
    readonly gives: undefined;
  };
  /**
   * Writes down what the provider's answer changes: the order after it. Undefined, and nothing is written, if the order
   * has changed since, was cancelled since and would come to be FROZEN, or waits for a person; one that is RELEASED may wait
   * for one.
   */
  UpdateOrder: {
    readonly takes: { readonly update: OrderUpdate; readonly at: BusinessTime };
    readonly gives: EscrowCase | undefined;
  };
  /** An order, to reconcile it. */
  FindCase: { readonly takes: { readonly escrowId: string }; readonly gives: EscrowCase | undefined };
  /**
   * Takes the provider that orders are reconciled with from now on. Refused with ESCROW_STATE_CONFLICT if there are orders
   * that another one is still to be asked about, or that wait for a person.
   */
  UseProvider: { readonly takes: { readonly name: string }; readonly gives: undefined };
  /** Makes all orders with an open instruction due. */
  ResumeOpen: { readonly takes: { readonly nowMs: number }; readonly gives: undefined };
  /**
   * Orders to ask the provider about: of each caller that has some those that are longest due, `perCaller` at most;
   * those due later than `horizonMs`, which the clock was set back from, come last. Callers come in the order of their ids, so
   * many at most as `callers` says, the one behind `after` first and the first of all behind the last.
   */
  ListDue: {
    readonly takes: {
      /** Whether those are listed of which the last attempt failed, or those of which none did since the last answer. */
      readonly hasFailed: boolean;
      readonly nowMs: number;
      readonly horizonMs: number;
      /** The id of a caller; 0 to begin with the first of all. */
      readonly after: number;
      readonly callers: number;
      readonly perCaller: number;
    };
    readonly gives: readonly DueOrder[];
  };
  /**
   * One share of the RELEASED orders whose history has an entry since `sinceMs` of the release or of what came after it:
   * an order is in the same one of so many `shares`, from 0, for ever, and neighbours are in different ones.
   */
  ListReleased: {
    readonly takes: { readonly share: number; readonly shares: number; readonly sinceMs: number };
    readonly gives: readonly string[];
  };
  /**
   * Remembers a notification for `notificationRetentionS`, and makes the order that it is about due, or the orders of a buyer
   * who is registered with these names, opened since a time, that are RELEASED or have an open RELEASE: true for the first time.
   */
  TakeNotification: {
    readonly takes: {
      readonly eventId: string;
      readonly about:
        | { readonly holdId: string }
        | { readonly reference: string }
        | { readonly buyer: ProviderIds; readonly openedSinceMs: number };
      readonly nowMs: number;
    };
    readonly gives: boolean;
  };
  /**
   * A person's decision about an order that waits for one, which leaves an act in the log. Refused with ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as
   * `planDecision` says.
   */
  Decide: {
    readonly takes: {
      readonly by: Actor;
      readonly escrowId: string;
      readonly decision: Decision;
      readonly instructionId: string;
      readonly nowMs: number;
    };
    readonly gives: EscrowCase;
  };
  /**
   * Closes an UNPAID order without the provider's word, and makes it due: a hold that comes after all goes back. Refused with
   * ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as `errorToClose` says.
   */
  CloseOrder: {
    readonly takes: { readonly by: Actor; readonly escrowId: string; readonly at: BusinessTime };
    readonly gives: EscrowCase;
  };
  /**
   * Ends an order by a person's word, as `planEnd` says, which leaves an act in the log. Where its state changes, the history
   * marks that as a person's word, RELEASED appends the TRANSFER record, and the order is due once more. Refused with
   * ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as `planEnd` says.
   */
  EndOrder: {
    readonly takes: {
      readonly by: Actor;
      readonly escrowId: string;
      readonly end: OrderEnd;
      /** SHA-256 of what proves it, 64 lower-case hexadecimal digits. */
      readonly evidence: string;
      readonly at: BusinessTime;
    };
    readonly gives: EscrowCase;
  };
  /** Orders with all that reconciling them needs, newest first. */
  ListCases: {
    readonly takes: { readonly selection: CaseSelection; readonly page: PageQuery };
    readonly gives: Page<EscrowCase>;
  };
}
