import { filingNotFound } from './filing.ts';
import { checkMoney } from './money.ts';
import { transfersMax } from './provenance.ts';
import { Refusal } from './reason.ts';
import { checkText, type TextBounds } from './text.ts';
import { FieldsRefused, type Violation } from './violation.ts';

/** Where the money of an order stands. */
export const escrowStates = ['UNPAID', 'FROZEN', 'RELEASED', 'REFUNDED', 'CLOSED'] as const;

/** One of them. */
export type EscrowState = (typeof escrowStates)[number];

/** How a sale is secured. */
export type EscrowType = 'GUARANTEE';

/** What a caller asks for. */
export interface EscrowTerms {
  readonly filingNo: string;
  readonly type: EscrowType;
  /** Minor units of the settlement currency. */
  readonly amount: bigint;
  readonly buyerId: string;
  readonly sellerId: string;
}

/** An escrow order. */
export interface Escrow extends EscrowTerms {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** What is under way for it; undefined if nothing is. */
  readonly pending: PendingKind | undefined;
  /** When it was opened: RFC 3339, whole seconds, numeric offset. */
  readonly timestamp: string;
  /** Name of the caller that opened it. */
  readonly caller: string;
  /** The states that it has been in, the first one UNPAID, the last one its own. */
  readonly history: readonly EscrowChange[];
}

/** One state that an order has come to. */
export interface EscrowChange {
  readonly state: EscrowState;
  /** When: RFC 3339, whole seconds, numeric offset. */
  readonly at: string;
}

/**
 * Where the institution says that the money of an order stands.
 *
 * - ABSENT: it knows of no hold for the order; an instruction may still reach it.
 * - VOID: there is no hold and there never will be: declined, or cancelled before it was made.
 * - HELD: it holds the amount.
 * - PAID_OUT: the seller has it.
 * - RETURNED: the buyer has it back, as instructed.
 * - LAPSED: the buyer has it back, since the hold ran out.
 *
 * Money only moves forward: ABSENT, then VOID or HELD, and from HELD to one of the last three.
 */
export type PaymentStatus = 'ABSENT' | 'VOID' | 'HELD' | 'PAID_OUT' | 'RETURNED' | 'LAPSED';

/**
 * What the standing of the money means for an order: the state that it is in from then on (its own: nothing
 * changes), or what else has to happen.
 *
 * - COMPENSATE: money is held that nobody waits for any more; it goes back to the buyer.
 * - CONTRADICTION: what was confirmed is not so; the order stops for a person.
 */
export const escrowMoves = {
  UNPAID: {
    ABSENT: 'UNPAID',
    VOID: 'CLOSED',
    HELD: 'FROZEN',
    PAID_OUT: 'CONTRADICTION',
    RETURNED: 'CLOSED',
    LAPSED: 'CLOSED',
  },
  FROZEN: {
    ABSENT: 'CONTRADICTION',
    VOID: 'CONTRADICTION',
    HELD: 'FROZEN',
    PAID_OUT: 'RELEASED',
    RETURNED: 'REFUNDED',
    LAPSED: 'CLOSED',
  },
  RELEASED: {
    ABSENT: 'CONTRADICTION',
    VOID: 'CONTRADICTION',
    HELD: 'CONTRADICTION',
    PAID_OUT: 'RELEASED',
    RETURNED: 'CONTRADICTION',
    LAPSED: 'CONTRADICTION',
  },
  REFUNDED: {
    ABSENT: 'CONTRADICTION',
    VOID: 'CONTRADICTION',
    HELD: 'CONTRADICTION',
    PAID_OUT: 'CONTRADICTION',
    RETURNED: 'REFUNDED',
    LAPSED: 'REFUNDED',
  },
  CLOSED: {
    ABSENT: 'CLOSED',
    VOID: 'CLOSED',
    HELD: 'COMPENSATE',
    PAID_OUT: 'CONTRADICTION',
    RETURNED: 'CLOSED',
    LAPSED: 'CLOSED',
  },
} as const satisfies Record<EscrowState, Record<PaymentStatus, EscrowState | 'COMPENSATE' | 'CONTRADICTION'>>;

/** Where an order goes when a person accepts a contradiction; any other stays where it is, and what is held stays held. */
const acceptedMoves: Partial<Record<EscrowState, Partial<Record<PaymentStatus, EscrowState>>>> = {
  // Paid out of a hold that nobody told of: from FROZEN it is RELEASED.
  UNPAID: { PAID_OUT: 'FROZEN' },
  FROZEN: { ABSENT: 'CLOSED', VOID: 'CLOSED' },
};

/** What the institution is told to do: hold, pay out, give back, and see to it that no hold is made. */
export type InstructionKind = 'FREEZE' | 'RELEASE' | 'REFUND' | 'CANCEL';

/** What callers are told to be under way for an order. */
export type PendingKind = Exclude<InstructionKind, 'CANCEL'>;

/**
 * What callers are told of the open instruction that was prepared last. A CANCEL ends a FREEZE that the institution left
 * without an answer: until it is carried out, whether the amount is held is what the order waits for.
 */
export function pendingOf(open: InstructionKind | undefined): PendingKind | undefined {
  return open === 'CANCEL' ? 'FREEZE' : open;
}

/**
 * How far an instruction has come: written down, being sent, without an answer, carried out, not carried out and
 * never to be. The first three are open.
 */
export type InstructionStatus = 'PREPARED' | 'SENT' | 'UNKNOWN' | 'CONFIRMED' | 'DECLINED';

/** What the standing of the money tells of an instruction; OPEN is that it has not been carried out yet. */
export const instructionOutcomes = {
  FREEZE: {
    ABSENT: 'OPEN',
    VOID: 'DECLINED',
    HELD: 'CONFIRMED',
    PAID_OUT: 'CONFIRMED',
    RETURNED: 'CONFIRMED',
    LAPSED: 'CONFIRMED',
  },
  RELEASE: {
    ABSENT: 'OPEN',
    VOID: 'DECLINED',
    HELD: 'OPEN',
    PAID_OUT: 'CONFIRMED',
    RETURNED: 'DECLINED',
    LAPSED: 'DECLINED',
  },
  REFUND: {
    ABSENT: 'OPEN',
    VOID: 'DECLINED',
    HELD: 'OPEN',
    PAID_OUT: 'DECLINED',
    RETURNED: 'CONFIRMED',
    LAPSED: 'DECLINED',
  },
  CANCEL: {
    ABSENT: 'OPEN',
    VOID: 'CONFIRMED',
    HELD: 'OPEN',
    PAID_OUT: 'DECLINED',
    RETURNED: 'CONFIRMED',
    LAPSED: 'CONFIRMED',
  },
} as const satisfies Record<InstructionKind, Record<PaymentStatus, 'CONFIRMED' | 'DECLINED' | 'OPEN'>>;

/** What the institution says of an order. */
export interface PaymentSnapshot {
  readonly standing: PaymentStatus;
  /** What is or was held, in minor units; undefined where there never was a hold. */
  readonly amount?: bigint | undefined;
  /** ISO 4217 code of the amount. */
  readonly currency?: string | undefined;
  /** The institution's own name for the hold, if it has given one. */
  readonly reference?: string | undefined;
}

/** An order and its open instructions, as far as they decide what a standing means. */
export interface OrderSnapshot {
  readonly state: EscrowState;
  /** Minor units. */
  readonly amount: bigint;
  /** ISO 4217 code of the amount. */
  readonly currency: string;
  /** What the institution said that a person accepted, if one did: amount, currency and standing. */
  readonly accepted: PaymentSnapshot | undefined;
  readonly openKinds: readonly InstructionKind[];
}

/** What an order comes to: a state, its own included, and perhaps money to give back; or a person has to look. */
export type Transition =
  | { readonly kind: 'SETTLED'; readonly to: EscrowState; readonly givesBack: boolean }
  | { readonly kind: 'REVIEW'; readonly why: string };

/** What the institution's word on its money means for an order. `declined` is the instruction that this is a no to. */
export function nextTransition(
  order: OrderSnapshot,
  hold: PaymentSnapshot,
  declined?: InstructionKind,
): Transition {
  const { state, accepted, openKinds } = order;
  const { standing } = hold;
  const stays = { kind: 'SETTLED', to: state, givesBack: false } as const;
  // What is on its way back to the buyer freezes nothing any more, and need not be what was agreed.
  const isReturning = openKinds.some((kind) => isReturn(kind) && kind !== declined);
  if (standing === 'HELD' && isReturning) return stays;
  const difference = differenceIn(order, hold);
  if (difference !== undefined) return { kind: 'REVIEW', why: difference };
  const move = escrowMoves[state][standing];
  if (move === 'CONTRADICTION') {
    if (standing === accepted?.standing) return { ...stays, to: acceptedMoves[state]?.[standing] ?? state };
    return { kind: 'REVIEW', why: `The order is ${state}; the institution says ${standing}.` };
  }
  if (standing === 'HELD' && state !== 'FROZEN' && isReturn(declined)) {
    return { kind: 'REVIEW', why: 'The institution declines to give back what it holds.' };
  }
  if (move !== 'COMPENSATE') return { ...stays, to: move };
  return { ...stays, givesBack: standing !== accepted?.standing };
}

const isReturn = (kind: InstructionKind | undefined) => kind === 'CANCEL' || kind === 'REFUND';

/** What becomes of a wish or a decision: an instruction to prepare, one that is under way already, or a refusal. */
export type ResolutionPlan =
  | { readonly kind: 'PREPARE'; readonly instruction: InstructionKind; readonly ends: boolean }
  | { readonly kind: 'GO_ON' }
  | { readonly kind: 'CONFLICT'; readonly why: string };

/** An order that somebody wants something of. */
export interface ResolvableOrder {
  readonly escrowId: string;
  readonly state: EscrowState;
  /** The open instruction that moves its money on, if there is one. */
  readonly underWay: InstructionKind | undefined;
  /** It waits for a person. */
  readonly isStopped: boolean;
}

/** What becomes of a caller's wish to have the money of an order paid out or back. */
export function planResolution(kind: 'RELEASE' | 'REFUND', order: ResolvableOrder): ResolutionPlan {
  const { escrowId, state, underWay, isStopped } = order;
  if (state !== 'FROZEN') {
    const done = kind === 'RELEASE' ? 'released' : 'refunded';
    return conflict(`${escrowId} is ${state}; only a FROZEN order can be ${done}.`);
  }
  if (underWay === kind) return { kind: 'GO_ON' };
  if (underWay !== undefined) return conflict(`A ${underWay} of ${escrowId} is under way.`);
  if (isStopped) return conflict(`${escrowId} waits for a decision of the operator.`);
  return { kind: 'PREPARE', instruction: kind, ends: false };
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

/** What becomes of a person's decision. */
export function planDecision(decision: Decision, order: OrderInReview): ResolutionPlan {
  const { escrowId, state, underWay, isStopped, found, hasPaid } = order;
  if (!isStopped) return conflict(`${escrowId} does not wait for a decision.`);
  if (decision === 'LOOK_AGAIN') return { kind: 'GO_ON' };
  if (found === undefined)
    return conflict(`The institution has said nothing of ${escrowId}; have it asked again.`);
  if (decision === 'ACCEPT') return { kind: 'GO_ON' };
  if (found.standing !== 'HELD') return conflict(`The institution holds nothing for ${escrowId}.`);
  if (hasPaid) return conflict(`The money of ${escrowId} was paid already; it cannot be paid a second time.`);
  if (isReturn(underWay)) return { kind: 'GO_ON' };
  // A RELEASE that has not been carried out gives way.
  return {
    kind: 'PREPARE',
    instruction: state === 'UNPAID' ? 'CANCEL' : 'REFUND',
    ends: underWay === 'RELEASE',
  };
}

const conflict = (why: string): ResolutionPlan => ({ kind: 'CONFLICT', why });

/** The refusal of a move that the state of an order does not allow. */
export const stateConflict = (message: string): Refusal => new Refusal('ESCROW_STATE_CONFLICT', message);

/** The refusal for an id that names no order that the caller may see. */
export const escrowNotFound = (): Refusal =>
  new FieldsRefused('ESCROW_NOT_FOUND', [{ field: 'escrowId', rule: 'names no escrow.' }]);

/** How the money that the institution holds or paid differs from what was agreed, in a sentence. */
function differenceIn(order: OrderSnapshot, hold: PaymentSnapshot): string | undefined {
  const { standing, amount, currency } = hold;
  if (standing !== 'HELD' && standing !== 'PAID_OUT') return undefined;
  const agreed = [order, ...(order.accepted ? [order.accepted] : [])];
  if (agreed.some((sum) => sum.amount === amount && sum.currency === currency)) return undefined;
  return `The order is over ${order.amount} ${order.currency}; the institution says ${standing} ${amount} ${currency}.`;
}

/** Bounds of buyerId and sellerId, in code points. */
export const partyIdBounds: TextBounds = { min: 1, max: 128 };

/** The lowest amount, in minor units; the highest is moneyMax. */
export const amountMin = 1n;

/** A filing as far as it decides whether it can be sold. */
export interface FilingForSale {
  readonly filingNo: string;
  /** Who filed it: its caller id; undefined if the number names no filing. */
  readonly filedBy: number | undefined;
  /** Its order that is UNPAID or FROZEN. */
  readonly active: { readonly escrowId: string; readonly callerId: number } | undefined;
  /** How many TRANSFER records it has. */
  readonly transfers: number;
}

/**
 * Refuses to open an order for a filing that `owner`, or anybody if that is undefined, cannot sell now. Throws
 * FILING_NOT_FOUND, PERMISSION_DENIED, ESCROW_ACTIVE, TRANSFERS_EXHAUSTED.
 */
export function refuseUnsaleable(filing: FilingForSale, owner: number | undefined): void {
  const { filingNo, filedBy, active, transfers } = filing;
  if (filedBy === undefined) throw filingNotFound();
  if (owner !== undefined && filedBy !== owner) {
    throw new Refusal(
      'PERMISSION_DENIED',
      'Only the caller that filed the artwork may open an escrow for it.',
    );
  }
  if (active !== undefined) {
    const isVisible = owner === undefined || active.callerId === owner;
    const name = isVisible ? `: ${active.escrowId}` : '';
    throw new Refusal('ESCROW_ACTIVE', `${filingNo} has an open escrow already${name}.`);
  }
  if (transfers >= transfersMax) {
    throw new Refusal(
      'TRANSFERS_EXHAUSTED',
      `${filingNo} has ${transfersMax} transfers, the most that a filing may have; it cannot be sold again.`,
    );
  }
}

/** Refuses to settle orders at another institution as long as `open` of them need the one before. Throws ESCROW_STATE_CONFLICT. */
export function refuseChangeOfInstitution(before: string, open: number): void {
  if (open === 0) return;
  throw stateConflict(
    `Orders are open at the institution ${before}: ${open}. Let them end there, or set ` +
      `ARTSEAL_PAYMENT_INSTITUTION to ${before}.`,
  );
}

/** What an escrow answers as its clearing: the service holds no funds. */
export const clearing = 'LICENSED_PSP_NO_SECOND_CLEARING';

/** The terms that break their rules; an unknown or unsent type is undefined. */
export function checkTerms(
  terms: Omit<EscrowTerms, 'type'> & { readonly type?: EscrowType | undefined },
): Violation[] {
  const violations = [
    ...(terms.filingNo === '' ? [{ field: 'filingNo', rule: 'is required' }] : []),
    ...(terms.type === undefined ? [{ field: 'type', rule: 'must be GUARANTEE' }] : []),
    ...checkMoney('amount', terms.amount, amountMin),
    ...checkText('buyerId', terms.buyerId, partyIdBounds),
    ...checkText('sellerId', terms.sellerId, partyIdBounds),
  ];
  const sameParty = terms.buyerId !== '' && terms.buyerId === terms.sellerId;
  return sameParty ? [...violations, { field: 'sellerId', rule: 'must differ from buyerId' }] : violations;
}
