import type { AfterPayout, EscrowState, InstructionKind, InstructionStatus, PayoutStatus } from './escrow.ts';
import {
  instructionOutcomes,
  nextTransition,
  type OrderSnapshot,
  type PaymentSnapshot,
  type PaymentStatus,
  type Transition,
} from './payment.ts';

/** An open instruction. */
export interface OpenInstruction {
  readonly instructionId: string;
  readonly kind: InstructionKind;
  readonly status: Exclude<InstructionStatus, 'CONFIRMED' | 'DECLINED'>;
}

/** An instruction that has ended. */
export interface EndedInstruction {
  readonly instructionId: string;
  readonly status: 'CONFIRMED' | 'DECLINED';
  /** Why it was declined, for the buyer. */
  readonly reason?: string | undefined;
}

/** An order with its open instructions, as it was at the time of the provider request. */
export interface OrderUnderWay extends Omit<OrderSnapshot, 'openKinds'> {
  /** The last provider status after the payout that differs from PAID_OUT, or restores it; undefined if there was none. */
  readonly afterPayout: AfterPayout | undefined;
  /** Whether it needs a review by an operator. */
  readonly isInReview: boolean;
  /** Oldest first. */
  readonly open: readonly OpenInstruction[];
}

/** The effect of a provider status on an order. */
export interface UpdatePlan {
  readonly to: EscrowState;
  /** The open instructions that end. */
  readonly ended: readonly EndedInstruction[];
  /** Whether the money is to be given back to the buyer. */
  readonly givesBack: boolean;
  /** Why an operator has to review the order; undefined if none has to. */
  readonly review: string | undefined;
  /** Whether the provider carried out the instruction, so that failed attempts count from zero again. */
  readonly resetsAttempts: boolean;
  /** Whether the buyer has to act before anything else happens. */
  readonly awaitsBuyer: boolean;
  /** The provider status after the payout, if it changed. */
  readonly afterPayout: AfterPayout | undefined;
  /**
   * When to look up the order next. NOW: at once. SOON: the buyer may have acted. QUIET: after a long time, since a hold may
   * lapse without a notification. NEVER: not at all.
   */
  readonly nextLookUp: 'NOW' | 'SOON' | 'QUIET' | 'NEVER';
}

/** Plans how a provider status changes an order. `answered` is the instruction to which it is the response, if it is one. */
export function planUpdate(
  order: OrderUnderWay,
  payment: PaymentSnapshot,
  answered?: OpenInstruction,
): UpdatePlan {
  const { state: from, open } = order;
  const ended = endedBy(payment, open, answered);
  const isNo = ({ instructionId, status }: EndedInstruction) =>
    instructionId === answered?.instructionId && status === 'DECLINED';
  const openKinds = open.map(({ kind }) => kind);
  const transition = nextTransition(
    { ...order, openKinds },
    payment,
    ended.some(isNo) ? answered?.kind : undefined,
  );
  const awaitsBuyer = payment.status === 'AWAITING_BUYER' && open.at(-1)?.kind === 'FREEZE';
  // As long as no instruction is answered, one that stays open is another failed attempt.
  const resetsAttempts = answered !== undefined || awaitsBuyer || ended.length > 0 || open.length === 0;
  const review = reviewOf(order, payment, transition);
  if (review !== undefined || transition.kind === 'REVIEW') {
    const stays = {
      to: from,
      ended: ended.filter(isNo),
      givesBack: false,
      resetsAttempts,
      awaitsBuyer: false,
    };
    return { ...stays, review, afterPayout: newsAfterPayout(from, order, payment), nextLookUp: 'NEVER' };
  }
  const { to, givesBack } = transition;
  // An accepted contradiction may end an order whose instruction was never answered.
  const isOver = to !== from && to !== 'FROZEN';
  const endOf = ({ instructionId }: OpenInstruction): EndedInstruction =>
    ended.find((end) => end.instructionId === instructionId) ?? { instructionId, status: 'DECLINED' };
  const settled = isOver ? open.map(endOf) : ended;
  const isDone = !givesBack && settled.length === open.length;
  const nextLookUp = awaitsBuyer ? 'SOON' : isDone ? nextOfDone(from, to, payment) : 'NOW';
  const afterPayout = newsAfterPayout(to, order, payment);
  return { to, ended: settled, givesBack, review, resetsAttempts, awaitsBuyer, afterPayout, nextLookUp };
}

/**
 * Why an operator has to review an order: the provider declines or contradicts something, or reports a change after the payout.
 * An order in review gets a new reason only if the provider status after the payout changes.
 */
function reviewOf(
  order: OrderUnderWay,
  payment: PaymentSnapshot,
  transition: Transition,
): string | undefined {
  const { state, isInReview } = order;
  const isNews = newsAfterPayout(state, order, payment) !== undefined;
  if (isInReview && !isNews) return undefined;
  if (transition.kind === 'REVIEW')
    return [transition.why, payment.declined?.detail].filter(Boolean).join(' ');
  if (!isNews) return undefined;
  return `The order was RELEASED; the provider says ${payment.status} after ${order.afterPayout?.payment}.`;
}

const payoutStatuses: readonly PaymentStatus[] = [
  'PAID_OUT',
  'PARTLY_RETURNED',
  'DISPUTED',
  'RETURNED',
] satisfies PayoutStatus[];

/** The provider status after the payout of an order that is or becomes RELEASED; undefined if it has not changed. */
function newsAfterPayout(
  state: EscrowState,
  { afterPayout: before }: Pick<OrderUnderWay, 'afterPayout'>,
  { status, amount }: PaymentSnapshot,
): AfterPayout | undefined {
  if (state !== 'RELEASED' || !payoutStatuses.includes(status)) return undefined;
  const now = { payment: status as PayoutStatus, ...(status === 'PARTLY_RETURNED' && { amount }) };
  const { payment, amount: left } = before ?? { payment: 'PAID_OUT' };
  return payment === now.payment && left === now.amount ? undefined : now;
}

/** When to look up an order without open instructions. */
function nextOfDone(
  from: EscrowState,
  to: EscrowState,
  { status }: PaymentSnapshot,
): UpdatePlan['nextLookUp'] {
  // The accepted status of an UNPAID order may be later than HELD.
  if (to === 'FROZEN' && to !== from && status !== 'HELD') return 'NOW';
  // A hold may lapse without a notification, and a cancelled one may still be made.
  const canStillCome = status === 'ABSENT' || status === 'AWAITING_BUYER';
  const mayHoldLater = to === 'CLOSED' && (from === 'UNPAID' || canStillCome);
  return to === 'FROZEN' || mayHoldLater ? 'QUIET' : 'NEVER';
}

/**
 * The open instructions that a provider status ends. A response always ends its instruction, except a FREEZE for which the buyer
 * has to act.
 */
function endedBy(
  payment: PaymentSnapshot,
  open: readonly OpenInstruction[],
  answered: OpenInstruction | undefined,
): EndedInstruction[] {
  const reason = payment.declined?.words;
  return open.flatMap(({ instructionId, kind }): EndedInstruction[] => {
    const outcome = instructionOutcomes[kind][payment.status];
    const isAnswered = instructionId === answered?.instructionId;
    const isBuyersTurn = kind === 'FREEZE' && payment.status === 'AWAITING_BUYER';
    if (outcome === 'OPEN' && (!isAnswered || isBuyersTurn)) return [];
    return outcome === 'CONFIRMED'
      ? [{ instructionId, status: outcome }]
      : [{ instructionId, status: 'DECLINED', reason }];
  });
}
