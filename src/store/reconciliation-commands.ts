import type { Decision, Escrow, EscrowState, Hold, OperationKind } from '../domain/escrow.ts';
import type { Operation } from './escrow-commands.ts';
import type { BusinessTime } from './filing-commands.ts';
import type { Page, PageQuery } from './paging.ts';

/** How long a notification is remembered, in seconds: longer than an institution repeats it. */
export const notificationRetentionS = 2_592_000;

/** An order with all that its settlement needs. */
export interface EscrowCase {
  readonly order: Escrow;
  /** The operation id of its FREEZE, by which the institution knows it. */
  readonly holdId: string;
  /** Unix milliseconds. */
  readonly openedAtMs: number;
  /** The institution's own name for the hold. */
  readonly reference: string | undefined;
  /** Questions and instructions in a row that were left without an answer. */
  readonly unanswered: number;
  /** Why it waits for a person. */
  readonly attention: string | undefined;
  /** What the institution said that a person accepted; undefined if none did. */
  readonly accepted: Hold | undefined;
  /** How many notifications have come about it. */
  readonly notices: number;
  /** Its open instructions, oldest first. */
  readonly open: readonly Pick<Operation, 'operationId' | 'kind' | 'status'>[];
}

/** What the institution's word comes to. */
export interface Settlement {
  readonly escrowId: string;
  readonly from: EscrowState;
  /** May be the same. */
  readonly to: EscrowState;
  /** Open instructions that it ends. */
  readonly ended: readonly { readonly operationId: string; readonly status: 'CONFIRMED' | 'DECLINED' }[];
  /** An instruction that it makes necessary. */
  readonly prepared: { readonly operationId: string; readonly kind: OperationKind } | undefined;
  readonly reference: string | undefined;
  /** Why a person has to look, and what the institution said, if anything; the order is not due until one decided. */
  readonly attention: { readonly why: string; readonly found: Hold | undefined } | undefined;
  /** Whether the institution did as it was told, so that the next attempt is a first one. */
  readonly isHeard: boolean;
  /** EscrowCase.notices of when the institution was asked. If more have come since, the order is due at once. */
  readonly notices: number;
  /** Unix milliseconds; undefined for never. */
  readonly lookUpAtMs: number | undefined;
}

/** Which cases to list. */
export interface CaseSelection {
  /** Undefined is any. */
  readonly state: EscrowState | undefined;
  /** Only those that wait for a person. */
  readonly isInNeed: boolean;
}

/**
 * The ledger of what the institution was told, and what it said. The state of an order changes by compare-and-swap
 * alone, and with each change go the end of the instructions that it answers, its row of history and, for RELEASED, the
 * TRANSFER record: all of it or nothing.
 */
export interface ReconciliationCommands {
  /** An instruction as it stands. */
  FindOperation: { readonly takes: { readonly operationId: string }; readonly gives: Operation | undefined };
  /** Notes that an open instruction is being given; unless something is heard, the order is due at `lookUpAtMs`. */
  NoteSent: {
    readonly takes: { readonly operationId: string; readonly lookUpAtMs: number };
    readonly gives: undefined;
  };
  /**
   * Notes that the institution did not answer; the order is due again at `lookUpAtMs`, or earlier if notifications
   * have come since it had so many `notices`.
   */
  NoteUnanswered: {
    readonly takes: { readonly escrowId: string; readonly lookUpAtMs: number; readonly notices: number };
    readonly gives: undefined;
  };
  /**
   * Writes down what the institution's word came to: the order after it. Undefined, and nothing is written, if the order
   * has changed since or waits for a person.
   */
  Settle: {
    readonly takes: { readonly settlement: Settlement; readonly at: BusinessTime };
    readonly gives: EscrowCase | undefined;
  };
  /** What settling needs of an order. */
  FindCase: { readonly takes: { readonly escrowId: string }; readonly gives: EscrowCase | undefined };
  /**
   * Takes the institution that orders are settled at from now on. Refused with ESCROW_STATE_CONFLICT if there are orders
   * that another one is still to be asked about, or that wait for a person.
   */
  UseInstitution: { readonly takes: { readonly name: string }; readonly gives: undefined };
  /** Makes all orders with an open instruction due. */
  ResumeOpen: { readonly takes: { readonly nowMs: number }; readonly gives: undefined };
  /**
   * Orders to ask the institution about, longest due first; those due later than `horizonMs`, which the clock was
   * set back from, count as due.
   */
  ListDue: {
    readonly takes: { readonly nowMs: number; readonly horizonMs: number; readonly count: number };
    readonly gives: readonly string[];
  };
  /** Remembers a notification for `notificationRetentionS`, and makes the order that it is about due: true for the first time. */
  TakeNotification: {
    readonly takes: { readonly eventId: string; readonly holdId: string; readonly nowMs: number };
    readonly gives: boolean;
  };
  /** A person's decision about an order that waits for one. Refused with ESCROW_NOT_FOUND; ESCROW_STATE_CONFLICT as `decisionOn` says. */
  Decide: {
    readonly takes: {
      readonly escrowId: string;
      readonly decision: Decision;
      readonly operationId: string;
      readonly nowMs: number;
    };
    readonly gives: EscrowCase;
  };
  /** Orders with all that their settlement needs, newest first. */
  ListCases: {
    readonly takes: { readonly selection: CaseSelection; readonly page: PageQuery };
    readonly gives: Page<EscrowCase>;
  };
}
