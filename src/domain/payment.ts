import type { EscrowState, InstructionKind } from './escrow.ts';

/**
 * Where the money of an order is, as the provider says.
 *
 * - ABSENT: it knows of no hold for the order; an instruction may still reach it.
 * - AWAITING_BUYER: there is no hold, and one is made as soon as the buyer has done what the provider asks for.
 * - VOID: there is no hold and there never will be: declined, or cancelled before it was made.
 * - HELD: the amount is held, or reserved, for the seller.
 * - PAID_OUT: the seller has it.
 * - PARTLY_RETURNED: the seller had it, and the buyer got a part of it back since.
 * - DISPUTED: the seller had it, and the buyer contests that since.
 * - RETURNED: the buyer has all of it back.
 * - LAPSED: the buyer has it back, since the hold ran out.
 *
 * Money only moves forward: ABSENT, AWAITING_BUYER, then VOID or HELD, and from HELD to one of the others. What was paid
 * out can be contested and returned without anybody being told to, and a dispute can be lost (RETURNED) or won (PAID_OUT).
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
 * What the status of the money means for an order: the state that it is in from then on (its own: nothing
 * changes), or what else has to happen.
 *
 * - COMPENSATE: money is held that nobody waits for any more; it goes back to the buyer.
 * - CONTRADICTION: what was confirmed is not so; the order stops for a person.
 */
export const escrowMoves = {
  UNPAID: {
    ABSENT: 'UNPAID',
    AWAITING_BUYER: 'UNPAID',
    VOID: 'CLOSED',
    HELD: 'FROZEN',
    PAID_OUT: 'CONTRADICTION',
    PARTLY_RETURNED: 'CONTRADICTION',
    DISPUTED: 'CONTRADICTION',
    RETURNED: 'CLOSED',
    LAPSED: 'CLOSED',
  },
  FROZEN: {
    ABSENT: 'CONTRADICTION',
    AWAITING_BUYER: 'CONTRADICTION',
    VOID: 'CONTRADICTION',
    HELD: 'FROZEN',
    PAID_OUT: 'RELEASED',
    PARTLY_RETURNED: 'CONTRADICTION',
    DISPUTED: 'CONTRADICTION',
    RETURNED: 'REFUNDED',
    LAPSED: 'CLOSED',
  },
  RELEASED: {
    ABSENT: 'CONTRADICTION',
    AWAITING_BUYER: 'CONTRADICTION',
    VOID: 'CONTRADICTION',
    HELD: 'CONTRADICTION',
    PAID_OUT: 'RELEASED',
    PARTLY_RETURNED: 'CONTRADICTION',
    DISPUTED: 'CONTRADICTION',
    RETURNED: 'CONTRADICTION',
    LAPSED: 'CONTRADICTION',
  },
  REFUNDED: {
    ABSENT: 'CONTRADICTION',
    AWAITING_BUYER: 'CONTRADICTION',
    VOID: 'CONTRADICTION',
    HELD: 'CONTRADICTION',
    PAID_OUT: 'CONTRADICTION',
    PARTLY_RETURNED: 'CONTRADICTION',
    DISPUTED: 'CONTRADICTION',
    RETURNED: 'REFUNDED',
    LAPSED: 'REFUNDED',
  },
  CLOSED: {
    ABSENT: 'CLOSED',
    AWAITING_BUYER: 'COMPENSATE',
    VOID: 'CLOSED',
    HELD: 'COMPENSATE',
    PAID_OUT: 'CONTRADICTION',
    PARTLY_RETURNED: 'CONTRADICTION',
    DISPUTED: 'CONTRADICTION',
    RETURNED: 'CLOSED',
    LAPSED: 'CLOSED',
  },
} as const satisfies Record<EscrowState, Record<PaymentStatus, EscrowState | 'COMPENSATE' | 'CONTRADICTION'>>;

/** Where an order goes when a person accepts a contradiction; any other stays where it is, and what is held stays held. */
const acceptedMoves: Partial<Record<EscrowState, Partial<Record<PaymentStatus, EscrowState>>>> = {
  // Paid out of a hold that nobody told of: from FROZEN it is RELEASED.
  UNPAID: { PAID_OUT: 'FROZEN', PARTLY_RETURNED: 'FROZEN', DISPUTED: 'FROZEN' },
  FROZEN: {
    ABSENT: 'CLOSED',
    VOID: 'CLOSED',
    PAID_OUT: 'RELEASED',
    PARTLY_RETURNED: 'RELEASED',
    DISPUTED: 'RELEASED',
  },
};

/** What the status of the money tells of an instruction; OPEN is that it has not been carried out yet. */
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

/** What the provider says of the money of an order, at one moment. */
export interface PaymentSnapshot {
  readonly status: PaymentStatus;
  /**
   * What is or was held, in minor units, and of PARTLY_RETURNED what the seller still has; undefined where there never was a
   * hold.
   */
  readonly amount?: bigint | undefined;
  /** ISO 4217 code of the amount. */
  readonly currency?: string | undefined;
  /** The provider's own name for the hold, if it has given one. */
  readonly reference?: string | undefined;
  /** Until when what is HELD is kept, Unix milliseconds; undefined where it does not lapse, or not as far as is known. */
  readonly holdExpiresAtMs?: number | undefined;
  /** Where the buyer has to act, of AWAITING_BUYER alone: a page, by `isPage`. */
  readonly nextActionUrl?: string | undefined;
  /** Until when they can, Unix milliseconds; undefined where the provider does not say. */
  readonly nextActionExpiresAtMs?: number | undefined;
  /** Why an instruction was not carried out; undefined if it was, or if the provider does not say. */
  readonly declined?: Declined | undefined;
}

/** What the buyer is told where the reason is none of theirs. */
export const unexplainedWords =
  'The payment provider does not take this payment; whoever runs the registry can tell why.';

/** Why the provider declined an instruction. */
export interface Declined {
  /** The provider's own code, such as `insufficient_funds`. */
  readonly code: string;
  /** A sentence for the buyer, which may be shown to anybody who sees the order. */
  readonly words: string;
  /** All that the provider said, for the operator. */
  readonly detail: string;
}

/** An order and its open instructions, as far as they decide what a payment status means. */
export interface OrderSnapshot {
  readonly state: EscrowState;
  /** Minor units. */
  readonly amount: bigint;
  /** ISO 4217 code of the amount. */
  readonly currency: string;
  /** What the provider said that a person accepted, if one did: amount, currency and status. */
  readonly accepted: PaymentSnapshot | undefined;
  readonly openKinds: readonly InstructionKind[];
}

/** What an order comes to: a state, its own included, and perhaps money to give back; or a person has to look. */
export type Transition =
  | { readonly kind: 'SETTLED'; readonly to: EscrowState; readonly givesBack: boolean }
  | { readonly kind: 'REVIEW'; readonly why: string };

/** What the provider's answer means for an order. `declined` is the instruction that it declines by that, if it does. */
export function nextTransition(
  order: OrderSnapshot,
  payment: PaymentSnapshot,
  declined?: InstructionKind,
): Transition {
  const { state, accepted, openKinds } = order;
  const { status } = payment;
  const stays = { kind: 'SETTLED', to: state, givesBack: false } as const;
  // What is on its way back to the buyer freezes nothing any more, and need not be what was agreed.
  const isReturning = openKinds.some((kind) => isReturn(kind) && kind !== declined);
  const couldBePaidOut = status === 'HELD' || status === 'AWAITING_BUYER';
  if (couldBePaidOut && isReturning) return stays;
  const difference = differenceIn(order, payment);
  if (difference !== undefined) return { kind: 'REVIEW', why: difference };
  const move = escrowMoves[state][status];
  // Without an open RELEASE somebody else paid the seller, perhaps the seller: a person decides whether that is a sale.
  const isUnasked = state === 'FROZEN' && status === 'PAID_OUT' && !openKinds.includes('RELEASE');
  if (move === 'CONTRADICTION' || isUnasked) {
    if (status === accepted?.status) return { ...stays, to: acceptedMoves[state]?.[status] ?? state };
    return { kind: 'REVIEW', why: `The order is ${state}; the provider says ${status}.` };
  }
  // A declined REFUND leaves an order FROZEN, but a RELEASE that it was to forestall is not given again without a person.
  const staysFrozen = state === 'FROZEN' && !openKinds.includes('RELEASE');
  if (couldBePaidOut && !staysFrozen && isReturn(declined)) {
    return { kind: 'REVIEW', why: 'The provider declines to give back what it holds.' };
  }
  if (move !== 'COMPENSATE') return { ...stays, to: move };
  return { ...stays, givesBack: status !== accepted?.status };
}

/** Whether an instruction brings the money back to the buyer. */
export const isReturn = (kind: InstructionKind | undefined) => kind === 'CANCEL' || kind === 'REFUND';

/** Where the money is counted. What was given back since is never what was agreed: a person has to accept it. */
const countedStatuses: readonly PaymentStatus[] = ['HELD', 'PAID_OUT', 'PARTLY_RETURNED'];

/** How the money that the provider holds or paid differs from what was agreed, in a sentence. */
function differenceIn(order: OrderSnapshot, payment: PaymentSnapshot): string | undefined {
  const { status, amount, currency } = payment;
  if (!countedStatuses.includes(status)) return undefined;
  const agreed = [order, ...(order.accepted ? [order.accepted] : [])];
  if (agreed.some((sum) => sum.amount === amount && sum.currency === currency)) return undefined;
  return `The order is over ${order.amount} ${order.currency}; the provider says ${status} ${amount} ${currency}.`;
}
