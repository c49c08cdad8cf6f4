import type { EscrowTerms } from './escrow-terms.ts';
import { ApiError } from './reason.ts';
import { ValidationError } from './violation.ts';

/** The states of an order, by where its money is. */
export const escrowStates = ['UNPAID', 'FROZEN', 'RELEASED', 'REFUNDED', 'CLOSED'] as const;

/** UNPAID and FROZEN orders are open; the other states are final. */
export type EscrowState = (typeof escrowStates)[number];

/** An escrow order. */
export interface Escrow extends EscrowTerms {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** What is under way for it; undefined if nothing is. */
  readonly pending: PendingKind | undefined;
  /** When it was opened: RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
  /** Name of the caller that opened it. */
  readonly caller: string;
  /** Until when the provider keeps its hold, Unix milliseconds; undefined where it does not say, or there is no hold. */
  readonly holdExpiresAtMs: number | undefined;
  /** What the buyer has to do before the amount can be held; undefined if nothing is to be done. */
  readonly nextAction: NextAction | undefined;
  /** What has happened to it, the first the state UNPAID. */
  readonly history: readonly EscrowChange[];
}

/** Something that the buyer has to do. */
export interface NextAction {
  /** Where. */
  readonly url: string;
  /** Until when it is waited for, Unix milliseconds. */
  readonly untilMs: number;
}

/** A state that an order has come to, or, after its release, what was said of the money since. */
export interface EscrowChange extends Partial<AfterPayout> {
  readonly state: EscrowState;
  /** When: RFC 3339, whole seconds, numeric offset. */
  readonly at: string;
  /** Set where a person decided the state, without the provider's word. */
  readonly byOperator?: true | undefined;
}

/** Whether the state that an order is in is a person's word. */
export function isByOperator({ history }: Pick<Escrow, 'history'>): boolean {
  return history.findLast(({ payment }) => payment === undefined)?.byOperator === true;
}

/** What the provider says of money that it had paid out. */
export interface AfterPayout {
  readonly payment: PayoutStatus;
  /** What the seller still has, in minor units, of PARTLY_RETURNED alone. */
  readonly amount?: bigint | undefined;
}

/** Whether a change is what the provider reported of money that it had paid out. */
export const isAfterPayout = (change: EscrowChange): change is EscrowChange & AfterPayout =>
  change.payment !== undefined;

/** What can become of money that was paid out; PAID_OUT where a dispute was won. */
export type PayoutStatus = 'PAID_OUT' | 'PARTLY_RETURNED' | 'DISPUTED' | 'RETURNED';

/** What the provider is told to do: hold, pay out, give back, and see to it that no hold is made. */
export type InstructionKind = 'FREEZE' | 'RELEASE' | 'REFUND' | 'CANCEL';

/** An instruction under way, as callers are told of it. */
export type PendingKind = Exclude<InstructionKind, 'CANCEL'>;

/**
 * What callers read of the open instruction that was prepared last. A CANCEL is a REFUND to them, whether a caller, an
 * operator or a deadline cancels the order: whatever is held, or comes to be held, goes back to the buyer.
 */
export function pendingOf(open: InstructionKind | undefined): PendingKind | undefined {
  return open === 'CANCEL' ? 'REFUND' : open;
}

/**
 * How far an instruction has come: written down, being sent, without an answer, carried out, not carried out and
 * never to be. The first three are open.
 */
export type InstructionStatus = 'PREPARED' | 'SENT' | 'UNKNOWN' | 'CONFIRMED' | 'DECLINED';

/** The error of a move that the state of an order does not allow. */
export const stateConflict = (message: string): ApiError => new ApiError('ESCROW_STATE_CONFLICT', message);

/** The error for an id that names no order that the caller may see. */
export const escrowNotFound = (): ApiError =>
  new ValidationError('ESCROW_NOT_FOUND', [{ field: 'escrowId', rule: 'names no escrow.' }]);

/** Refuses to change to another provider as long as `open` of them need the one before. Throws ESCROW_STATE_CONFLICT. */
export function refuseChangeOfProvider(before: string, open: number): void {
  if (open === 0) return;
  throw stateConflict(
    `Orders are open at the provider ${before}: ${open}. Let them end there, or set ` +
      `ARTSEAL_PAYMENT_PROVIDER to ${before}.`,
  );
}
