import type { EscrowState, InstructionKind } from './escrow.ts';

/**
 * The provider status: where the money of an order is.
 *
 * - ABSENT: the provider knows no hold for the order. An instruction may still reach it.
 * - AWAITING_BUYER: there is no hold yet. The provider makes one once the buyer has completed a step.
 * - VOID: there is no hold and never will be: it was declined, or cancelled before it was made.
 * - HELD: the amount is held, or reserved, for the seller.
 * - PAID_OUT: the seller has it.
 * - PARTLY_RETURNED: the seller had it, and a part of it went back to the buyer.
 * - DISPUTED: the seller had it, and the buyer disputes the payment.
 * - RETURNED: the buyer has all of it back.
 * - LAPSED: the buyer has it back, since the hold expired.
 *
 * Money only moves forward: ABSENT, AWAITING_BUYER, then VOID or HELD, and from HELD to one of the others. A payout can be disputed
 * and returned without an instruction. A dispute ends lost (RETURNED) or won (PAID_OUT).
 */
export type PaymentStatus =
  | 'ABSENT'
  | 'AWAITING_BUYER'
  | 'VOID'
  | 'HELD'
  | 'PAID_OUT'
  | 'PARTLY_RETURNED'
  | 'DISPUTED'
  | 'RETURNED'
  | 'LAPSED';

/**
 * The next state of an order, by its state and the provider status. COMPENSATE: money is held for an order that is over; it goes
 * back to the buyer. Without an entry the status contradicts an earlier one; an operator has to review the order.
 */
const escrowMoves: Record<EscrowState, Partial<Record<PaymentStatus, EscrowState | 'COMPENSATE'>>> = {
  UNPAID: {
    ABSENT: 'UNPAID',
    AWAITING_BUYER: 'UNPAID',
    VOID: 'CLOSED',
    HELD: 'FROZEN',
    RETURNED: 'CLOSED',
    LAPSED: 'CLOSED',
  },
  FROZEN: { HELD: 'FROZEN', PAID_OUT: 'RELEASED', RETURNED: 'REFUNDED', LAPSED: 'CLOSED' },
  RELEASED: { PAID_OUT: 'RELEASED' },
  REFUNDED: { RETURNED: 'REFUNDED', LAPSED: 'REFUNDED' },
  CLOSED: {
    ABSENT: 'CLOSED',
    AWAITING_BUYER: 'COMPENSATE',
    VOID: 'CLOSED',
    HELD: 'COMPENSATE',
    RETURNED: 'CLOSED',
    LAPSED: 'CLOSED',
  },
};

/** The next state of an order if an operator accepts a contradiction; without an entry it keeps its state, and money stays held. */
const acceptedMoves: Partial<Record<EscrowState, Partial<Record<PaymentStatus, EscrowState>>>> = {
  // The provider never reported the hold. The next step leads from FROZEN to RELEASED.
  UNPAID: { PAID_OUT: 'FROZEN', PARTLY_RETURNED: 'FROZEN', DISPUTED: 'FROZEN' },
  FROZEN: {
    ABSENT: 'CLOSED',
    VOID: 'CLOSED',
    PAID_OUT: 'RELEASED',
    PARTLY_RETURNED: 'RELEASED',
    DISPUTED: 'RELEASED',
  },
};

/** The status of an instruction, by the provider status; OPEN if it has not been carried out yet. */
export const instructionOutcomes = {
  FREEZE: {
    ABSENT: 'OPEN',
    AWAITING_BUYER: 'OPEN',
    VOID: 'DECLINED',
    HELD: 'CONFIRMED',
    PAID_OUT: 'CONFIRMED',
    PARTLY_RETURNED: 'CONFIRMED',
    DISPUTED: 'CONFIRMED',
    RETURNED: 'CONFIRMED',
    LAPSED: 'CONFIRMED',
  },
  RELEASE: {
    ABSENT: 'OPEN',
    AWAITING_BUYER: 'OPEN',
    VOID: 'DECLINED',
    HELD: 'OPEN',
    PAID_OUT: 'CONFIRMED',
    PARTLY_RETURNED: 'CONFIRMED',
    DISPUTED: 'CONFIRMED',
    RETURNED: 'DECLINED',
    LAPSED: 'DECLINED',
  },
  REFUND: {
    ABSENT: 'OPEN',
    AWAITING_BUYER: 'OPEN',
    VOID: 'DECLINED',
    HELD: 'OPEN',
    PAID_OUT: 'DECLINED',
    PARTLY_RETURNED: 'DECLINED',
    DISPUTED: 'DECLINED',
    RETURNED: 'CONFIRMED',
    LAPSED: 'DECLINED',
  },
  CANCEL: {
    ABSENT: 'OPEN',
    AWAITING_BUYER: 'OPEN',
    VOID: 'CONFIRMED',
    HELD: 'OPEN',
    PAID_OUT: 'DECLINED',
    PARTLY_RETURNED: 'DECLINED',
    DISPUTED: 'DECLINED',
    RETURNED: 'CONFIRMED',
    LAPSED: 'CONFIRMED',
  },
} as const satisfies Record<InstructionKind, Record<PaymentStatus, 'CONFIRMED' | 'DECLINED' | 'OPEN'>>;

/** The provider status of an order, with its details. */
export interface PaymentSnapshot {
  readonly status: PaymentStatus;
  /** What is or was held, in minor units; for PARTLY_RETURNED what the seller still has. Undefined if there was no hold. */
  readonly amount?: bigint | undefined;
  /** ISO 4217 code of the amount. */
  readonly currency?: string | undefined;
  /** The provider's id of the hold, if it has one. */
  readonly reference?: string | undefined;
  /** When a hold expires, Unix milliseconds; undefined if it does not, or the provider does not say. */
  readonly holdExpiresAtMs?: number | undefined;
  /** The page of the step that the buyer has to complete, by `isPage`; only for AWAITING_BUYER. */
  readonly nextActionUrl?: string | undefined;
  /** When the page expires, Unix milliseconds; undefined if the provider does not say. */
  readonly nextActionExpiresAtMs?: number | undefined;
  /** Why the provider declined an instruction; undefined if it did not, or does not say. */
  readonly declined?: Declined | undefined;
}

/** The reason for the buyer if the provider gives one only to the operator. */
export const unexplainedWords =
  'The payment provider does not take this payment. Ask the operator of the registry why.';

/** Why the provider declined an instruction. */
export interface Declined {
  /** The provider's own code, such as `insufficient_funds`. */
  readonly code: string;
  /** A sentence for the buyer, which everyone who sees the order may read. */
  readonly words: string;
  /** The full reason, for the operator. */
  readonly detail: string;
}

/** The members of an order that decide what a provider status means for it. */
export interface OrderSnapshot {
  readonly state: EscrowState;
  /** Minor units. */
  readonly amount: bigint;
  /** ISO 4217 code of the amount. */
  readonly currency: string;
  /** Amount, currency and status that an operator accepted; undefined if none did. */
  readonly accepted: PaymentSnapshot | undefined;
  readonly openKinds: readonly InstructionKind[];
}

/** The next state of an order, perhaps its current one, and whether to give money back; or why an operator has to review it. */
export type Transition =
  | { readonly kind: 'SETTLED'; readonly to: EscrowState; readonly givesBack: boolean }
  | { readonly kind: 'REVIEW'; readonly why: string };

/** Returns what a provider status means for an order. `declined` is the instruction that the provider declines by it, if any. */
export function nextTransition(
  order: OrderSnapshot,
  payment: PaymentSnapshot,
  declined?: InstructionKind,
): Transition {
  const { state, accepted, openKinds } = order;
  const { status } = payment;
  const stays = { kind: 'SETTLED', to: state, givesBack: false } as const;
  // Money on its way back to the buyer freezes nothing, and its amount does not matter.
  const isReturning = openKinds.some((kind) => isReturn(kind) && kind !== declined);
  const couldBePaidOut = status === 'HELD' || status === 'AWAITING_BUYER';
  if (couldBePaidOut && isReturning) return stays;
  const difference = differenceIn(order, payment);
  if (difference !== undefined) return { kind: 'REVIEW', why: difference };
  const move = escrowMoves[state][status];
  // Without an open RELEASE somebody else paid the seller. An operator decides whether that is a sale.
  const isUnasked = state === 'FROZEN' && status === 'PAID_OUT' && !openKinds.includes('RELEASE');
  if (move === undefined || isUnasked) {
    if (status === accepted?.status) return { ...stays, to: acceptedMoves[state]?.[status] ?? state };
    return { kind: 'REVIEW', why: `The order is ${state}; the provider says ${status}.` };
  }
  // A declined REFUND leaves an order FROZEN. If a RELEASE is open, too, an operator has to decide.
  const staysFrozen = state === 'FROZEN' && !openKinds.includes('RELEASE');
  if (couldBePaidOut && !staysFrozen && isReturn(declined)) {
    return { kind: 'REVIEW', why: 'The provider declines to give back what it holds.' };
  }
  if (move !== 'COMPENSATE') return { ...stays, to: move };
  return { ...stays, givesBack: status !== accepted?.status };
}

/** Whether an instruction brings the money back to the buyer. */
export const isReturn = (kind: InstructionKind | undefined) => kind === 'CANCEL' || kind === 'REFUND';

/** The statuses whose amount is compared with the order. */
const countedStatuses: readonly PaymentStatus[] = ['HELD', 'PAID_OUT', 'PARTLY_RETURNED'];

/** How the amount at the provider differs from the order, in a sentence; undefined if it does not. */
function differenceIn(order: OrderSnapshot, payment: PaymentSnapshot): string | undefined {
  const { status, amount, currency } = payment;
  if (!countedStatuses.includes(status)) return undefined;
  const agreed = [order, ...(order.accepted ? [order.accepted] : [])];
  if (agreed.some((sum) => sum.amount === amount && sum.currency === currency)) return undefined;
  return `The order is over ${order.amount} ${order.currency}; the provider says ${status} ${amount} ${currency}, in minor units.`;
}
