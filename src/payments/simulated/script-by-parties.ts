import type { InstructionKind } from '../../domain/escrow.ts';
import type { PaymentInstruction } from '../provider.ts';
import type { Course } from './course.ts';
import { faultless, type InstructionFault, type Script } from './faults.ts';

const slowAnswerMs = 3_000;
const shortHoldMs = 5_000;
const duplicateAfterMs = 1_000;

/** When something happens that comes later by itself, and then the next of it, in milliseconds. */
const laterMs = 5_000;

/** How the ids of parties begin for whom something goes wrong. */
export const partyPrefixes = {
  declined: 'sim-decline',
  refusingReturn: 'sim-refuse-return',
  silent: 'sim-silent',
  lostAnswer: 'sim-lost-answer',
  lostRequest: 'sim-lost-request',
  slow: 'sim-slow',
  lapsing: 'sim-lapse',
  duplicate: 'sim-duplicate',
  acting: 'sim-must-act',
  failing: 'sim-must-act-fail',
  neverActing: 'sim-must-act-never',
  wrongAmount: 'sim-wrong-amount',
  contradicting: 'sim-contradiction',
  returningLater: 'sim-refund-later',
  returningPartLater: 'sim-refund-part-later',
  disputedLater: 'sim-dispute-later',
  wonLater: 'sim-dispute-won-later',
  lostLater: 'sim-dispute-lost-later',
} as const;

type Name = keyof typeof partyPrefixes;

const faults: Partial<Record<Name, (attempt: number, kind: InstructionKind) => InstructionFault>> = {
  declined: () => ({ kind: 'DECLINE' }),
  refusingReturn: (_, kind) => ({ kind: kind === 'REFUND' || kind === 'CANCEL' ? 'REFUSE' : 'NONE' }),
  silent: () => ({ kind: 'SILENT', carriedOut: false }),
  lostAnswer: (attempt) => ({ kind: attempt === 1 ? 'LOST_ANSWER' : 'NONE' }),
  lostRequest: (attempt) => ({ kind: attempt === 1 ? 'LOST_REQUEST' : 'NONE' }),
  slow: () => ({ kind: 'SLOW', ms: slowAnswerMs }),
  lapsing: () => ({ kind: 'SHORT_HOLD', ms: shortHoldMs }),
  duplicate: () => ({ kind: 'DUPLICATE_REQUEST', ms: duplicateAfterMs }),
};

const dispute = { event: 'DISPUTE', afterMs: laterMs } as const;

const courses: Partial<Record<Name, (instruction: PaymentInstruction) => Course>> = {
  acting: () => ({ buyer: [{ event: 'BUYER_ACTS', afterMs: laterMs }] }),
  failing: () => ({ buyer: [{ event: 'BUYER_FAILS', afterMs: laterMs }] }),
  neverActing: () => ({ buyer: [] }),
  wrongAmount: ({ amount }) => ({ amount: amount + 1n }),
  contradicting: () => ({ contradicts: true }),
  returningLater: () => ({ afterPayout: [{ event: 'RETURN_ALL', afterMs: laterMs }] }),
  returningPartLater: () => ({ afterPayout: [{ event: 'RETURN_PART', afterMs: laterMs }] }),
  disputedLater: () => ({ afterPayout: [dispute] }),
  wonLater: () => ({ afterPayout: [dispute, { event: 'DISPUTE_WON', afterMs: 2 * laterMs }] }),
  lostLater: () => ({ afterPayout: [dispute, { event: 'DISPUTE_LOST', afterMs: 2 * laterMs }] }),
};

/**
 * The script of sandboxes: what happens is chosen by how the buyerId begins for a FREEZE, and the sellerId for what follows
 * it. A CANCEL comes through, so that every order ends, unless the seller's id asks for its error; look-ups and notifications
 * always do.
 */
export function scriptByParties(): Script {
  return {
    ...faultless,
    instruction: (instruction, attempt) => {
      const { kind } = instruction;
      const name = nameOf(instruction);
      if (name === undefined || (kind === 'CANCEL' && name !== 'refusingReturn')) return { kind: 'NONE' };
      return faults[name]?.(attempt, kind) ?? { kind: 'NONE' };
    },
    course: (instruction) => {
      const name = nameOf(instruction);
      return (name && courses[name]?.(instruction)) ?? {};
    },
  };
}

/** What the party asks for who decides about an instruction; the longest prefix counts. */
function nameOf({ kind, buyerId, sellerId }: PaymentInstruction): Name | undefined {
  const partyId = kind === 'FREEZE' ? buyerId : sellerId;
  const [name] = (Object.keys(partyPrefixes) as Name[])
    .filter((candidate) => partyId.startsWith(partyPrefixes[candidate]))
    .sort((one, other) => partyPrefixes[other].length - partyPrefixes[one].length);
  return name;
}
