import type { EscrowTerms } from './escrow-terms.ts';
import { ApiError } from './reason.ts';
import { fieldError } from './violation.ts';

/** The states of an order, by where its money is. */
export const escrowStates = ['UNPAID', 'FROZEN', 'RELEASED', 'REFUNDED', 'CLOSED'] as const;

/** UNPAID and FROZEN orders are open; the other states are final. */
export type EscrowState = (typeof escrowStates)[number];

/** An escrow order. */
export interface Escrow extends EscrowTerms {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** The open instruction, as callers see it; undefined if there is none. */
  readonly pending: PendingKind | undefined;
  /** When it was opened: RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
  /** Name of the caller that opened it. */
  readonly caller: string;
  /** When the hold of the provider expires, Unix milliseconds; undefined if the provider does not say, or there is no hold. */
  readonly holdExpiresAtMs: number | undefined;
  /** What the buyer has to do before the amount can be held; undefined if nothing is to be done. */
  readonly nextAction: NextAction | undefined;
  /** Its changes, oldest first, beginning with the state UNPAID. */
  readonly history: readonly EscrowChange[];
}

/** Something that the buyer has to do. */
export interface NextAction {
  /** Where. */
  readonly url: string;
  /** The deadline, Unix milliseconds. */
  readonly untilMs: number;
}

/** A change of state, or a provider status after the payout. */
export interface EscrowChange extends Partial<AfterPayout> {
  readonly state: EscrowState;
  /** When: RFC 3339, whole seconds, numeric offset. */
  readonly at: string;
  /** Set if an operator confirmed the state in place of the provider. */
  readonly byOperator?: true | undefined;
}

/** Whether an operator confirmed the state of an order in place of the provider. */
export function isByOperator(
  history: readonly { readonly payment?: unknown; readonly byOperator?: boolean | undefined }[],
): boolean {
  return history.findLast(({ payment }) => payment === undefined)?.byOperator === true;
}

/** The provider status of money after its payout. */
export interface AfterPayout {
  readonly payment: PayoutStatus;
  /** What the seller still has, in minor units; only for PARTLY_RETURNED. */
  readonly amount?: bigint | undefined;
}

/** Whether a change is a provider status after the payout. */
export const isAfterPayout = (change: EscrowChange): change is EscrowChange & AfterPayout =>
  change.payment !== undefined;

/** The provider statuses after a payout; PAID_OUT if a dispute was won. */
export type PayoutStatus = 'PAID_OUT' | 'PARTLY_RETURNED' | 'DISPUTED' | 'RETURNED';

/** The instructions to the provider: hold, pay out, give back, and make no hold. */
export type InstructionKind = 'FREEZE' | 'RELEASE' | 'REFUND' | 'CANCEL';

/** An open instruction, as callers see it. */
export type PendingKind = Exclude<InstructionKind, 'CANCEL'>;

/**
 * The open instruction, as callers see it. A CANCEL is a REFUND for them, since whatever is or will be held goes back to the buyer:
 * whether a caller, an operator or a deadline cancelled the order.
 */
export function pendingOf(open: InstructionKind | undefined): PendingKind | undefined {
  return open === 'CANCEL' ? 'REFUND' : open;
}

/**
 * The status of an instruction: stored, sent, without a response, carried out, and never to be carried out. The first three are
 * open.
 */
export type InstructionStatus = 'PREPARED' | 'SENT' | 'UNKNOWN' | 'CONFIRMED' | 'DECLINED';

/** The error of a move that the state of an order does not allow. */
export const stateConflict = (message: string): ApiError => new ApiError('ESCROW_STATE_CONFLICT', message);

/** The error for an id that names no order that the caller may see. */
export const escrowNotFound = (): ApiError => fieldError('ESCROW_NOT_FOUND', 'escrowId', 'names no escrow.');
