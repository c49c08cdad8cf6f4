import type { InstructionKind } from '../../domain/escrow.ts';
import { faultless, type InstructionFault, type Script } from './faults.ts';

const slowAnswerMs = 3_000;
const shortHoldMs = 5_000;
const duplicateAfterMs = 1_000;

/** How the ids of parties begin for whom something goes wrong. */
export const partyPrefixes = {
  declined: 'sim-decline',
  silent: 'sim-silent',
  lostAnswer: 'sim-lost-answer',
  lostRequest: 'sim-lost-request',
  slow: 'sim-slow',
  lapsing: 'sim-lapse',
  duplicate: 'sim-duplicate',
} as const;

const faults: Record<keyof typeof partyPrefixes, (attempt: number) => InstructionFault> = {
  declined: () => ({ kind: 'DECLINE' }),
  silent: () => ({ kind: 'SILENT', carriedOut: false }),
  lostAnswer: (attempt) => ({ kind: attempt === 1 ? 'LOST_ANSWER' : 'NONE' }),
  lostRequest: (attempt) => ({ kind: attempt === 1 ? 'LOST_REQUEST' : 'NONE' }),
  slow: () => ({ kind: 'SLOW', ms: slowAnswerMs }),
  lapsing: () => ({ kind: 'SHORT_HOLD', ms: shortHoldMs }),
  duplicate: () => ({ kind: 'DUPLICATE_REQUEST', ms: duplicateAfterMs }),
};

/** Whose id decides about each instruction. */
const partyOf = {
  FREEZE: 'buyerId',
  RELEASE: 'sellerId',
  REFUND: 'sellerId',
} as const satisfies Partial<Record<InstructionKind, 'buyerId' | 'sellerId'>>;

/**
 * The script of sandboxes: what goes wrong is chosen by how the buyerId begins for a FREEZE, and the sellerId for a
 * RELEASE or REFUND. A CANCEL always comes through, so that every order ends; so do look-ups and notifications.
 */
export function scriptByParties(): Script {
  return {
    ...faultless,
    instruction: (instruction, attempt) => {
      if (instruction.kind === 'CANCEL') return { kind: 'NONE' };
      const fault = faultOf(instruction[partyOf[instruction.kind]]);
      return fault?.(attempt) ?? { kind: 'NONE' };
    },
  };
}

function faultOf(partyId: string): ((attempt: number) => InstructionFault) | undefined {
  const names = Object.keys(partyPrefixes) as (keyof typeof partyPrefixes)[];
  const name = names.find((candidate) => partyId.startsWith(partyPrefixes[candidate]));
  return name && faults[name];
}
