import type { EscrowState, InstructionKind } from './escrow.ts';
import type { EndedInstruction, OpenInstruction } from './order-update.ts';
import { instructionOutcomes, isReturn, type PaymentSnapshot } from './payment.ts';

/** The effect of a request or a decision: an instruction to prepare, the one that is open already, or an error. */
export type ResolutionPlan =
  | { readonly kind: 'PREPARE'; readonly instruction: InstructionKind }
  | { readonly kind: 'RESUME' }
  | { readonly kind: 'CONFLICT'; readonly why: string };

/** The members of an order that decide whether its money can be paid out or back. */
export interface ResolvableOrder {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** The last open RELEASE, REFUND or CANCEL. */
  readonly underWay: InstructionKind | undefined;
  /** Whether it needs a review. */
  readonly isStopped: boolean;
}

/**
 * Plans the RELEASE or REFUND of an order that a caller requests. The REFUND of an UNPAID order cancels it: no hold is made any
 * more, and an existing one goes back to the buyer.
 */
export function planResolution(kind: 'RELEASE' | 'REFUND', order: ResolvableOrder): ResolutionPlan {
  const { escrowId, state, underWay, isStopped } = order;
  const cancels = kind === 'REFUND' && state === 'UNPAID';
  if (state !== 'FROZEN' && !cancels) {
    const rule =
      kind === 'RELEASE' ? 'a FROZEN order can be released' : 'an UNPAID or FROZEN order can be refunded';
    return conflict(`${escrowId} is ${state}; only ${rule}.`);
  }
  const instruction = cancels ? 'CANCEL' : kind;
  if (underWay === instruction) return { kind: 'RESUME' };
  if (underWay !== undefined) return conflict(`A ${underWay} of ${escrowId} is under way.`);
  if (isStopped) return conflict(`${escrowId} waits for a decision of the operator.`);
  return { kind: 'PREPARE', instruction };
}

/**
 * A decision of an operator. For an order in review: LOOK_AGAIN looks it up again, ACCEPT accepts the provider status, RETURN gives
 * back what is held. For an order that waits for the provider: STOP puts it in review.
 */
export type Decision = 'LOOK_AGAIN' | 'ACCEPT' | 'RETURN' | 'STOP';

/** The effect of a decision: that of a request, or the order is put in review. */
export type DecisionPlan = ResolutionPlan | { readonly kind: 'STOP' };

/** The members of an order that decide what an operator can decide. */
export interface OrderInReview extends ResolvableOrder {
  /** The provider status when the review began. */
  readonly found: PaymentSnapshot | undefined;
  /** Whether its money was paid, out or back, as the provider or an operator confirmed. */
  readonly hasPaid: boolean;
  /** Whether an instruction to give its money back was declined. */
  readonly hasDeclinedReturn: boolean;
  /** Whether any instruction is open, including the FREEZE. */
  readonly hasOpen: boolean;
}

/** Plans the effect of a decision. */
export function planDecision(decision: Decision, order: OrderInReview): DecisionPlan {
  const { escrowId, state, underWay, isStopped, found, hasPaid, hasDeclinedReturn } = order;
  if (decision === 'STOP') return planStop(order);
  if (!isStopped) return conflict(`${escrowId} does not wait for a decision: ${whatItWaitsFor(order)}`);
  if (decision === 'LOOK_AGAIN') return { kind: 'RESUME' };
  // The hold of a FROZEN order was confirmed once. If a RELEASE had no response, no status was found since.
  const known = found ?? (state === 'FROZEN' && decision === 'RETURN' ? { status: 'HELD' } : undefined);
  if (known === undefined)
    return conflict(`The provider has not reported a status of ${escrowId}: look it up again.`);
  if (decision === 'ACCEPT') {
    // If it were accepted, money would stay held for an order that is over and is not looked up any more.
    const isForgotten = state === 'CLOSED' && known.status === 'HELD' && !hasDeclinedReturn;
    if (isForgotten) return conflict(`${escrowId} is CLOSED and money is held for it: have it given back.`);
    return { kind: 'RESUME' };
  }
  if (known.status !== 'HELD')
    return conflict(
      `The provider holds nothing for ${escrowId}: its status is ${known.status}. Accept it, or look it up again.`,
    );
  if (hasPaid) return conflict(`The money of ${escrowId} was paid already; it cannot be paid a second time.`);
  if (isReturn(underWay)) return { kind: 'RESUME' };
  // A RELEASE without a response stays open and is not sent again. The provider reports which of the two was first.
  return { kind: 'PREPARE', instruction: state === 'UNPAID' ? 'CANCEL' : 'REFUND' };
}

/**
 * Why an operator cannot close an order; undefined if they can. A hold that the provider makes later goes back to the buyer, so the
 * status of the FREEZE does not matter.
 */
export function errorToClose({
  escrowId,
  state,
  found,
}: Pick<OrderInReview, 'escrowId' | 'state' | 'found'>): string | undefined {
  if (state !== 'UNPAID') return `${escrowId} is ${state}; only an UNPAID order can be closed.`;
  if (found === undefined || found.status === 'ABSENT') return undefined;
  return `The provider says ${found.status} of ${escrowId}; have it given back, or accept it.`;
}

/** The states in which an operator can end an order, and the provider status that each stands for. */
const statusOfEnd = { RELEASED: 'PAID_OUT', REFUNDED: 'RETURNED', CLOSED: 'VOID' } as const;

/** A state in which an operator can end an order. */
export type OrderEnd = keyof typeof statusOfEnd;

/** All of them. */
export const orderEnds = Object.keys(statusOfEnd) as readonly OrderEnd[];

/**
 * Plans how an operator ends an order with evidence, in place of the provider: all its open instructions end, so that none is sent
 * any more; or there is an error. An UNPAID or FROZEN order takes the given state. A final order keeps its state, since events and a
 * TRANSFER may have followed: it can be ended only as that, and only if it needs a review or an instruction is open.
 */
export function planEnd(
  end: OrderEnd,
  order: Pick<ResolvableOrder, 'escrowId' | 'state' | 'isStopped'> & {
    readonly open: readonly OpenInstruction[];
  },
) {
  const { escrowId, state, isStopped, open } = order;
  const isFinal = state !== 'UNPAID' && state !== 'FROZEN';
  if (isFinal && state !== end)
    return conflict(`${escrowId} is ${state}, which is final: it can end as that alone.`);
  if (isFinal && !isStopped && open.length === 0)
    return conflict(`${escrowId} is ${state}, and nothing is under way.`);
  const ended = open.map(({ instructionId, kind }): EndedInstruction => {
    const status = instructionOutcomes[kind][statusOfEnd[end]];
    const reason =
      status === 'DECLINED' ? `An operator of the registry ended the order as ${end}.` : undefined;
    return { instructionId, status, reason };
  });
  return { kind: 'END', ended } as const;
}

function planStop(order: OrderInReview): DecisionPlan {
  const { escrowId, isStopped, hasOpen } = order;
  if (isStopped) return conflict(`${escrowId} waits for a decision already.`);
  return hasOpen ? { kind: 'STOP' } : conflict(`${escrowId} waits for nothing: ${whatItWaitsFor(order)}`);
}

/** What an order waits for that is not in review. */
function whatItWaitsFor({ state, hasOpen }: OrderInReview): string {
  if (hasOpen) return 'it waits for the provider or the buyer, until that is stopped.';
  if (state === 'FROZEN') return 'it is FROZEN, until its caller releases or refunds it.';
  return `it is ${state}, and nothing is under way.`;
}

const conflict = (why: string) => ({ kind: 'CONFLICT', why }) as const;
