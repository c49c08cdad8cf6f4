import type { AfterPayout, EscrowState, InstructionKind, InstructionStatus, PayoutStatus } from './escrow.ts';
import {
  instructionOutcomes,
  nextTransition,
  type PaymentSnapshot,
  type PaymentStatus,
  type Transition,
} from './payment.ts';

/** An instruction that has not come to its end. */
export interface OpenInstruction {
  readonly instructionId: string;
  readonly kind: InstructionKind;
  readonly status: InstructionStatus;
}

/** An instruction that has. */
export interface EndedInstruction {
  readonly instructionId: string;
  readonly status: 'CONFIRMED' | 'DECLINED';
  /** Why it was declined, in words for the buyer. */
  readonly reason?: string | undefined;
}

/** An order with what is under way for it, as it was when the provider was asked. */
export interface OrderUnderWay {
  readonly state: EscrowState;
  /** Minor units. */
  readonly amount: bigint;
  /** ISO 4217 code of the amount. */
  readonly currency: string;
  /** What the provider said that a person accepted, if one did. */
  readonly accepted: PaymentSnapshot | undefined;
  /** What the provider said last of money that it had paid out; undefined as long as that was not in doubt. */
  readonly afterPayout: AfterPayout | undefined;
  /** Whether it waits for a person. */
  readonly isInReview: boolean;
  /** Oldest first. */
  readonly open: readonly OpenInstruction[];
}

/** What the provider's word on an order comes to. */
export interface UpdatePlan {
  readonly to: EscrowState;
  /** The open instructions that it ends. */
  readonly ended: readonly EndedInstruction[];
  /** Whether the money is to be given back to the buyer. */
  readonly givesBack: boolean;
  /** Why a person has to look; undefined if nobody has. */
  readonly review: string | undefined;
  /** Whether the provider did as it was told, so that the next attempt is a first one. */
  readonly resetsAttempts: boolean;
  /** Whether the buyer has to act before anything else happens. */
  readonly awaitsBuyer: boolean;
  /** What the provider says now of money that it had paid out, if it said otherwise before. */
  readonly afterPayout: AfterPayout | undefined;
  /**
   * When to ask about the order: at once, in a while, since the buyer may have acted, after a long while, since a hold may
   * lapse without a word, or never.
   */
  readonly nextLookUp: 'NOW' | 'SOON' | 'QUIET' | 'NEVER';
}

/** Plans what the provider's word, which may be the answer to one of its instructions, means for an order. */
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
  const settled = isOver ? open.map((instruction) => declinedUnless(instruction, ended)) : ended;
  const isDone = !givesBack && settled.length === open.length;
  const nextLookUp = awaitsBuyer ? 'SOON' : isDone ? nextOfDone(from, to, payment) : 'NOW';
  const afterPayout = newsAfterPayout(to, order, payment);
  return { to, ended: settled, givesBack, review, resetsAttempts, awaitsBuyer, afterPayout, nextLookUp };
}

/**
 * Why a person has to look: what the provider declines or contradicts, and whatever it says after a release. An order that
 * is in review already gets another one only for news of its money.
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

/** What the provider says of the money of an order that is, or comes to be, RELEASED, unless that was known. */
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

/** When to ask about an order that nothing is left to do for. */
function nextOfDone(
  from: EscrowState,
  to: EscrowState,
  { status }: PaymentSnapshot,
): UpdatePlan['nextLookUp'] {
  // What was accepted of an UNPAID order may be further than FROZEN.
  if (to === 'FROZEN' && to !== from && status !== 'HELD') return 'NOW';
  // A hold may lapse without a word, and one that was given up may be on its way.
  const canStillCome = status === 'ABSENT' || status === 'AWAITING_BUYER';
  const mayHoldLater = to === 'CLOSED' && (from === 'UNPAID' || canStillCome);
  return to === 'FROZEN' || mayHoldLater ? 'QUIET' : 'NEVER';
}

/** What is left to do for an order, when the provider has said where its money is. */
export type NextStep =
  | { readonly kind: 'NOTHING' }
  /** It waited too long for its hold. */
  | { readonly kind: 'CANCEL' }
  | { readonly kind: 'SEND'; readonly instruction: OpenInstruction };

/**
 * Plans the next step: the newest open instruction is given, unless a person has to look, the buyer has to act or the hold
 * comes too late.
 */
export function planNextStep(
  order: Pick<OrderUnderWay, 'open'> & { readonly review: unknown; readonly nextAction: unknown },
  isOverdue: boolean,
): NextStep {
  const instruction = order.open.at(-1);
  if (order.review !== undefined || instruction === undefined) return { kind: 'NOTHING' };
  const isFreeze = instruction.kind === 'FREEZE';
  if (isFreeze && isOverdue) return { kind: 'CANCEL' };
  if (isFreeze && order.nextAction !== undefined) return { kind: 'NOTHING' };
  return { kind: 'SEND', instruction };
}

/** Why a person has to look at an order after so many attempts in a row without an answer; undefined if nobody has yet. */
export function reviewOfSilence(failedAttempts: number, attemptsMax: number): string | undefined {
  if (failedAttempts < attemptsMax) return undefined;
  return `The provider left ${failedAttempts} attempts in a row without an answer.`;
}

/**
 * The open instructions that the provider's word ends. Where it is the answer to one, that one is not left open, but for a
 * FREEZE that the buyer has to act for.
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

/** How an instruction ended; one that did not has come to nothing. */
function declinedUnless(
  { instructionId }: OpenInstruction,
  ended: readonly EndedInstruction[],
): EndedInstruction {
  return ended.find((end) => end.instructionId === instructionId) ?? { instructionId, status: 'DECLINED' };
}
