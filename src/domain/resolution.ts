import type { EscrowState, InstructionKind } from './escrow.ts';
import type { EndedInstruction, OpenInstruction } from './order-update.ts';
import { instructionOutcomes, isReturn, type PaymentSnapshot } from './payment.ts';

/** What a request or a decision leads to: an instruction to prepare, the one that is under way already, or an error. */
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

/**
 * Plans what a caller's request to have the money of an order paid out or back leads to. The REFUND of an UNPAID order
 * cancels it: no hold is made for it from then on, and one that there is already goes back to the buyer.
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
 * What a person decides. About an order that waits for one: to ask the provider again; to take its word as it is; to
 * have it give back what it holds. About one that waits for the provider: to STOP that, so that it waits for a person.
 */
export type Decision = 'LOOK_AGAIN' | 'ACCEPT' | 'RETURN' | 'STOP';

/** What a decision leads to: as with a request, or the order stops for a person. */
export type DecisionPlan = ResolutionPlan | { readonly kind: 'STOP' };

/**
 * An order, what the provider said of it when it stopped, and whether its money was paid, out or back, by the provider's
 * word or a person's.
 */
export interface OrderInReview extends ResolvableOrder {
  readonly found: PaymentSnapshot | undefined;
  readonly hasPaid: boolean;
  /** Whether an instruction to give its money back was declined. */
  readonly hasDeclinedReturn: boolean;
  /** Whether any instruction of it is open, its FREEZE included. */
  readonly hasOpen: boolean;
}

/** Plans what a person's decision leads to. */
export function planDecision(decision: Decision, order: OrderInReview): DecisionPlan {
  const { escrowId, state, underWay, isStopped, found, hasPaid, hasDeclinedReturn } = order;
  if (decision === 'STOP') return planStop(order);
  if (!isStopped) return conflict(`${escrowId} does not wait for a decision: ${whatItWaitsFor(order)}`);
  if (decision === 'LOOK_AGAIN') return { kind: 'RESUME' };
  // That a FROZEN order's amount is held was confirmed once; where a RELEASE was never answered, nothing was found since.
  const known = found ?? (state === 'FROZEN' && decision === 'RETURN' ? { status: 'HELD' } : undefined);
  if (known === undefined)
    return conflict(`The provider has said nothing of ${escrowId}; have it asked again.`);
  if (decision === 'ACCEPT') {
    // Accepted, it would be held for an order that is over, and nobody would ask about it again.
    const isForgotten = state === 'CLOSED' && known.status === 'HELD' && !hasDeclinedReturn;
    if (isForgotten) return conflict(`${escrowId} is CLOSED and money is held for it: have it given back.`);
    return { kind: 'RESUME' };
  }
  if (known.status !== 'HELD')
    return conflict(
      `The provider holds nothing for ${escrowId}, it says ${known.status}: accept that, or have it asked again.`,
    );
  if (hasPaid) return conflict(`The money of ${escrowId} was paid already; it cannot be paid a second time.`);
  if (isReturn(underWay)) return { kind: 'RESUME' };
  // A RELEASE that was not answered stays open and is not given any more: the provider says which of the two was first.
  return { kind: 'PREPARE', instruction: state === 'UNPAID' ? 'CANCEL' : 'REFUND' };
}

/**
 * Why a person cannot close an order without the provider's word; undefined if they can. A hold that comes after all goes
 * back to the buyer, so nothing has to be known of the FREEZE.
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

/** The states in which a person can end an order, and what the provider would have said for each. */
const endsSaid = { RELEASED: 'PAID_OUT', REFUNDED: 'RETURNED', CLOSED: 'VOID' } as const;

/** A state in which a person can end an order. */
export type OrderEnd = keyof typeof endsSaid;

/** The same, as they are listed. */
export const orderEnds = Object.keys(endsSaid) as readonly OrderEnd[];

/** What ending an order leads to: the end of all that is open, so that nothing of it is given any more; or an error. */
export type EndPlan =
  | { readonly kind: 'END'; readonly ended: readonly EndedInstruction[] }
  | Extract<ResolutionPlan, { readonly kind: 'CONFLICT' }>;

/**
 * Plans how a person ends an order, with evidence and without the provider's word. One that is UNPAID or FROZEN ends as they
 * say, whether or not it waits for them. A final one keeps its state, which events and a TRANSFER may have followed: as that it
 * can be ended where it waits for a person, or where something is under way for it.
 */
export function planEnd(
  end: OrderEnd,
  order: Pick<ResolvableOrder, 'escrowId' | 'state' | 'isStopped'> & {
    readonly open: readonly OpenInstruction[];
  },
): EndPlan {
  const { escrowId, state, isStopped, open } = order;
  const isFinal = state !== 'UNPAID' && state !== 'FROZEN';
  if (isFinal && state !== end)
    return conflict(`${escrowId} is ${state}, which is final: it can end as that alone.`);
  if (isFinal && !isStopped && open.length === 0)
    return conflict(`${escrowId} is ${state}, and nothing is under way.`);
  const ended = open.map(({ instructionId, kind }): EndedInstruction => {
    const status = instructionOutcomes[kind][endsSaid[end]];
    const reason =
      status === 'DECLINED' ? `An operator of the registry ended the order as ${end}.` : undefined;
    return { instructionId, status, reason };
  });
  return { kind: 'END', ended };
}

function planStop(order: OrderInReview): DecisionPlan {
  const { escrowId, isStopped, hasOpen } = order;
  if (isStopped) return conflict(`${escrowId} waits for a decision already.`);
  return hasOpen ? { kind: 'STOP' } : conflict(`${escrowId} waits for nothing: ${whatItWaitsFor(order)}`);
}

/** For what an order waits about which nobody has to decide, and what can be done. */
function whatItWaitsFor({ state, hasOpen }: OrderInReview): string {
  if (hasOpen) return 'it waits for the provider or the buyer, until that is stopped.';
  if (state === 'FROZEN') return 'it is FROZEN, until its caller releases or refunds it.';
  return `it is ${state}, and nothing is under way.`;
}

const conflict = (why: string) => ({ kind: 'CONFLICT', why }) as const;
