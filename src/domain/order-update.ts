import type { EscrowState, InstructionKind, InstructionStatus } from './escrow.ts';
import { instructionOutcomes, nextTransition, type PaymentSnapshot } from './payment.ts';

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
}

/** An order with what is under way for it, as it was when the institution was asked. */
export interface OrderUnderWay {
  readonly state: EscrowState;
  /** Minor units. */
  readonly amount: bigint;
  /** ISO 4217 code of the amount. */
  readonly currency: string;
  /** What the institution said that a person accepted, if one did. */
  readonly accepted: PaymentSnapshot | undefined;
  /** Oldest first. */
  readonly open: readonly OpenInstruction[];
}

/** What the institution's word on an order comes to. */
export interface UpdatePlan {
  readonly to: EscrowState;
  /** The open instructions that it ends. */
  readonly ended: readonly EndedInstruction[];
  /** Whether the money is to be given back to the buyer. */
  readonly givesBack: boolean;
  /** Why a person has to look; undefined if nobody has. */
  readonly review: string | undefined;
  /** Whether the institution did as it was told, so that the next attempt is a first one. */
  readonly resetsAttempts: boolean;
  /** When to ask about the order: at once, after a long while, since a hold may lapse without a word, or never. */
  readonly nextLookUp: 'NOW' | 'QUIET' | 'NEVER';
}

/** Plans what the institution's word, which may be the answer to one of its instructions, means for an order. */
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
  // As long as no instruction is answered, one that stays open is another failed attempt.
  const resetsAttempts = answered !== undefined || ended.length > 0 || open.length === 0;
  if (transition.kind === 'REVIEW') {
    const stays = { to: from, ended: ended.filter(isNo), givesBack: false, resetsAttempts };
    return { ...stays, review: transition.why, nextLookUp: 'NEVER' };
  }
  const { to, givesBack } = transition;
  // An accepted contradiction may end an order whose instruction was never answered.
  const isOver = to !== from && to !== 'FROZEN';
  const settled = isOver ? open.map((instruction) => declinedUnless(instruction, ended)) : ended;
  const isDone = !givesBack && settled.length === open.length;
  const nextLookUp = isDone ? nextOfDone(from, to, payment) : 'NOW';
  return { to, ended: settled, givesBack, review: undefined, resetsAttempts, nextLookUp };
}

/** When to ask about an order that nothing is left to do for. */
function nextOfDone(
  from: EscrowState,
  to: EscrowState,
  { status }: PaymentSnapshot,
): UpdatePlan['nextLookUp'] {
  // What was accepted may be further than FROZEN.
  if (to === 'FROZEN' && status !== 'HELD') return 'NOW';
  // A hold may lapse without a word, and one that was given up may have been on its way.
  return to === 'FROZEN' || (to === 'CLOSED' && from === 'UNPAID') ? 'QUIET' : 'NEVER';
}

/** What is left to do for an order, when the institution has said where its money is. */
export type NextStep =
  | { readonly kind: 'NOTHING' }
  /** It waited too long for its hold. */
  | { readonly kind: 'CANCEL' }
  | { readonly kind: 'SEND'; readonly instruction: OpenInstruction };

/** Plans the next step: the newest open instruction is given, unless a person has to look or the hold comes too late. */
export function planNextStep(
  { open, review }: Pick<OrderUnderWay, 'open'> & { readonly review: unknown },
  isOverdue: boolean,
): NextStep {
  const instruction = open.at(-1);
  if (review !== undefined || instruction === undefined) return { kind: 'NOTHING' };
  if (instruction.kind === 'FREEZE' && isOverdue) return { kind: 'CANCEL' };
  return { kind: 'SEND', instruction };
}

/** Why a person has to look at an order after so many attempts in a row without an answer; undefined if nobody has yet. */
export function reviewOfSilence(failedAttempts: number, attemptsMax: number): string | undefined {
  if (failedAttempts < attemptsMax) return undefined;
  return `The institution left ${failedAttempts} attempts in a row without an answer.`;
}

/** The open instructions that the institution's word ends. Where it is the answer to one, that one is never left open. */
function endedBy(
  payment: PaymentSnapshot,
  open: readonly OpenInstruction[],
  answered: OpenInstruction | undefined,
): EndedInstruction[] {
  return open.flatMap(({ instructionId, kind }) => {
    const outcome = instructionOutcomes[kind][payment.status];
    if (outcome !== 'OPEN') return [{ instructionId, status: outcome }];
    return instructionId === answered?.instructionId ? [{ instructionId, status: 'DECLINED' as const }] : [];
  });
}

/** How an instruction ended; one that did not has come to nothing. */
function declinedUnless(
  { instructionId }: OpenInstruction,
  ended: readonly EndedInstruction[],
): EndedInstruction {
  return ended.find((end) => end.instructionId === instructionId) ?? { instructionId, status: 'DECLINED' };
}
