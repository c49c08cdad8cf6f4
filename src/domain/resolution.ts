import type { EscrowState, InstructionKind } from './escrow.ts';
import { isReturn, type PaymentSnapshot } from './payment.ts';

/** What a request or a decision leads to: an instruction to prepare, the one that is under way already, or a refusal. */
export type ResolutionPlan =
  | { readonly kind: 'PREPARE'; readonly instruction: InstructionKind }
  | { readonly kind: 'RESUME' }
  | { readonly kind: 'CONFLICT'; readonly why: string };

/** An order whose money is to be paid out or back, as far as that decides whether it can be. */
export interface ResolvableOrder {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** The open instruction that moves its money on, if there is one; the last of them. */
  readonly underWay: InstructionKind | undefined;
  /** It waits for a person. */
  readonly isStopped: boolean;
}

/** Plans what a caller's request to have the money of an order paid out or back leads to. */
export function planResolution(kind: 'RELEASE' | 'REFUND', order: ResolvableOrder): ResolutionPlan {
  const { escrowId, state, underWay, isStopped } = order;
  if (state !== 'FROZEN') {
    const done = kind === 'RELEASE' ? 'released' : 'refunded';
    return conflict(`${escrowId} is ${state}; only a FROZEN order can be ${done}.`);
  }
  if (underWay === kind) return { kind: 'RESUME' };
  if (underWay !== undefined) return conflict(`A ${underWay} of ${escrowId} is under way.`);
  if (isStopped) return conflict(`${escrowId} waits for a decision of the operator.`);
  return { kind: 'PREPARE', instruction: kind };
}

/**
 * What a person decides about an order that waits for one: to ask the institution again; to take its word as it is;
 * to have it give back what it holds.
 */
export type Decision = 'LOOK_AGAIN' | 'ACCEPT' | 'RETURN';

/** A stopped order, what the institution said of it, and whether its money was paid, out or back. */
export interface OrderInReview extends ResolvableOrder {
  readonly found: PaymentSnapshot | undefined;
  readonly hasPaid: boolean;
}

/** Plans what a person's decision leads to. */
export function planDecision(decision: Decision, order: OrderInReview): ResolutionPlan {
  const { escrowId, state, underWay, isStopped, found, hasPaid } = order;
  if (!isStopped) return conflict(`${escrowId} does not wait for a decision.`);
  if (decision === 'LOOK_AGAIN') return { kind: 'RESUME' };
  if (found === undefined)
    return conflict(`The institution has said nothing of ${escrowId}; have it asked again.`);
  if (decision === 'ACCEPT') return { kind: 'RESUME' };
  if (found.status !== 'HELD') return conflict(`The institution holds nothing for ${escrowId}.`);
  if (hasPaid) return conflict(`The money of ${escrowId} was paid already; it cannot be paid a second time.`);
  if (isReturn(underWay)) return { kind: 'RESUME' };
  // A RELEASE that was not answered stays open and is not given any more: the institution says which of the two was first.
  return { kind: 'PREPARE', instruction: state === 'UNPAID' ? 'CANCEL' : 'REFUND' };
}

const conflict = (why: string): ResolutionPlan => ({ kind: 'CONFLICT', why });
