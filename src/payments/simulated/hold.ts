import type { InstructionKind } from '../../domain/escrow.ts';
import type { Declined, PaymentSnapshot, PaymentStatus } from '../../domain/payment.ts';
import type { PaymentInstruction } from '../provider.ts';

/** How long a hold lasts if its course does not say, in milliseconds. */
export const holdLastsMs = 7 * 24 * 60 * 60 * 1000;

/**
 * What happens to money without an instruction.
 *
 * - LAPSE: the hold ends, and the buyer has the money again.
 * - BUYER_ACTS, BUYER_FAILS: the buyer confirms the payment, and the hold is made; or the buyer cannot confirm it.
 * - RETURN_PART, RETURN_ALL: the seller gives half of what is left back to the buyer, or all of it.
 * - RETURN_FAILED: what was partly returned does not reach the buyer, and the seller has everything again.
 * - DISPUTE, DISPUTE_WON, DISPUTE_LOST: the buyer contests the payment; the seller keeps the money, or gives it back.
 */
export type MoneyEvent =
  | 'LAPSE'
  | 'BUYER_ACTS'
  | 'BUYER_FAILS'
  | 'RETURN_PART'
  | 'RETURN_ALL'
  | 'RETURN_FAILED'
  | 'DISPUTE'
  | 'DISPUTE_WON'
  | 'DISPUTE_LOST';

/** An event of a course, so many milliseconds after the instruction that leads to it. */
export interface CourseEvent {
  readonly event: MoneyEvent;
  readonly afterMs: number;
}

/** What happens to the money of an order without further instructions. */
export interface Course {
  /** Set if the buyer has to act before the hold is made: what the buyer does, [] for nothing. */
  readonly buyer?: readonly CourseEvent[];
  /** What happens after the pay-out. */
  readonly afterPayout?: readonly CourseEvent[];
  /** The amount held instead of the amount of the order, in minor units. */
  readonly amount?: bigint;
  readonly holdLastsMs?: number;
  /** The provider makes a mistake: it pays out instead of holding, and forgets a hold instead of paying it out or back. */
  readonly contradicts?: boolean;
}

/** How an instruction is carried out. */
export interface Treatment {
  readonly verdict: Verdict;
  readonly course: Course;
}

/** The money of one order. It is stored as JSON, with amounts as decimal digits. */
export interface Hold {
  readonly holdId: string;
  readonly escrowId: string;
  status: PaymentStatus;
  /** Minor units. */
  amount?: bigint;
  currency?: string;
  /** What happened after the pay-out, oldest first, and what the seller had left; undefined before it was paid out. */
  afterPayout?: { readonly status: PaymentStatus; readonly left: bigint }[];
  /** How long the hold lasts once it is made, in milliseconds. */
  lastsMs?: number;
  /** Unix milliseconds. */
  expiresAtMs?: number;
  /** What happens at which time, in Unix milliseconds and in that order. */
  plan: readonly { readonly event: MoneyEvent; readonly atMs: number }[];
  /** Why the hold was never made. */
  rejection?: Rejection;
  /** What was sent, by instructionId. */
  readonly instructions: Record<string, SentInstruction>;
}

interface SentInstruction {
  readonly kind: InstructionKind;
  /** Where the money was after it was carried out; undefined if it has not arrived yet. */
  outcome?: PaymentStatus;
  rejection?: Rejection;
}

type Moves = Readonly<Record<InstructionKind, Readonly<Partial<Record<PaymentStatus, PaymentStatus>>>>>;

const moves: Moves = {
  FREEZE: { ABSENT: 'HELD' },
  RELEASE: { HELD: 'PAID_OUT' },
  REFUND: { AWAITING_BUYER: 'VOID', HELD: 'RETURNED' },
  CANCEL: { ABSENT: 'VOID', AWAITING_BUYER: 'VOID', HELD: 'RETURNED' },
};

// A party that declines still gets money back.
const movesDeclined: Moves = { ...moves, FREEZE: { ABSENT: 'VOID' }, RELEASE: {} };
const movesRefused: Moves = { ...movesDeclined, REFUND: {}, CANCEL: { ABSENT: 'VOID' } };
const movesUnder = { CONSENTED: moves, DECLINED: movesDeclined, REFUSED: movesRefused } as const;

/**
 * Who rejects an instruction: nobody; the party, who gets no hold as a buyer and no payment as a seller; or the provider
 * itself, which does not give money back either.
 */
export type Verdict = keyof typeof movesUnder;

/** Why an instruction was not carried out. */
export type Rejection = Exclude<Verdict, 'CONSENTED'> | 'BUYER_FAILS';

/** How the provider explains each rejection. */
export const rejections: Readonly<Record<Rejection, Declined>> = {
  DECLINED: {
    code: 'party_declined',
    words: 'The payment was declined.',
    detail: 'party_declined: the id of the party makes the simulated provider decline.',
  },
  REFUSED: {
    code: 'provider_refused',
    words: 'The payment provider refused it.',
    detail: 'provider_refused: the id of the party makes the simulated provider refuse.',
  },
  BUYER_FAILS: {
    code: 'authentication_failed',
    words: 'The buyer could not confirm the payment.',
    detail: 'authentication_failed: the simulated buyer acted, and failed.',
  },
};

/** Records that an instruction was sent; whether for the first time. Throws if its id belongs to another instruction. */
export function recordSending(hold: Hold, { instructionId, kind }: PaymentInstruction): boolean {
  const known = hold.instructions[instructionId];
  if (known !== undefined && known.kind !== kind) {
    throw new Error(`${instructionId} is the id of another instruction: ${known.kind} of ${hold.holdId}.`);
  }
  hold.instructions[instructionId] ??= { kind };
  return known === undefined;
}

/** Carries out an instruction whose sending is recorded, unless it was before; where the money is now. */
export function carryOut(
  hold: Hold,
  instruction: PaymentInstruction,
  treatment: Treatment,
  nowMs: number,
): PaymentSnapshot {
  const { instructionId, kind } = instruction;
  const sent = hold.instructions[instructionId];
  if (sent === undefined) throw new Error(`The sending of ${instructionId} is not recorded.`);
  advance(hold, nowMs);
  if (sent.outcome === undefined) {
    const { verdict } = treatment;
    const before = hold.status;
    // One that does not apply leaves the status as it is.
    const after = movesUnder[verdict][kind][before] ?? before;
    if (after !== before) move(hold, after, instruction, treatment.course, nowMs);
    if (verdict !== 'CONSENTED' && after !== (moves[kind][before] ?? before)) {
      sent.rejection = verdict;
      if (kind === 'FREEZE') hold.rejection = verdict;
    }
    sent.outcome = hold.status;
  }
  const payment = snapshotOf(hold);
  return sent.outcome === payment.status ? withReason(payment, sent.rejection) : payment;
}

function move(
  hold: Hold,
  to: PaymentStatus,
  { amount, currency }: PaymentInstruction,
  course: Course,
  nowMs: number,
): void {
  if (to === 'HELD') {
    hold.amount = course.amount ?? amount;
    hold.currency = currency;
    hold.lastsMs = course.holdLastsMs ?? holdLastsMs;
    if (course.buyer !== undefined) {
      hold.status = 'AWAITING_BUYER';
      schedule(hold, course.buyer, nowMs);
    } else if (course.contradicts) payOut(hold, course, nowMs);
    else makeHold(hold, nowMs);
  } else if (to === 'PAID_OUT' && !course.contradicts) payOut(hold, course, nowMs);
  else end(hold, hold.status === 'HELD' && course.contradicts ? 'VOID' : to);
}

function makeHold(hold: Hold, nowMs: number): void {
  const lastsMs = hold.lastsMs ?? holdLastsMs;
  hold.status = 'HELD';
  hold.expiresAtMs = nowMs + lastsMs;
  schedule(hold, [{ event: 'LAPSE', afterMs: lastsMs }], nowMs);
}

function payOut(hold: Hold, { afterPayout = [] }: Course, nowMs: number): void {
  hold.status = 'PAID_OUT';
  hold.afterPayout = [];
  schedule(hold, afterPayout, nowMs);
}

function end(hold: Hold, status: PaymentStatus): void {
  hold.status = status;
  hold.plan = [];
}

function schedule(hold: Hold, events: readonly CourseEvent[], nowMs: number): void {
  hold.plan = events.map(({ event, afterMs }) => ({ event, atMs: nowMs + afterMs }));
}

/** Makes everything happen whose time has come. */
export function advance(hold: Hold, nowMs: number): void {
  for (let next = hold.plan[0]; next !== undefined && next.atMs <= nowMs; next = hold.plan[0]) {
    hold.plan = hold.plan.slice(1);
    happen(hold, next.event, next.atMs);
  }
}

/** Makes an event happen; one that does not fit the status changes nothing. */
export function happen(hold: Hold, event: MoneyEvent, atMs: number): void {
  if (event === 'LAPSE') {
    if (hold.status === 'HELD') end(hold, 'LAPSED');
  } else if (event === 'BUYER_ACTS') {
    if (hold.status === 'AWAITING_BUYER') makeHold(hold, atMs);
  } else if (event === 'BUYER_FAILS') {
    if (hold.status !== 'AWAITING_BUYER') return;
    end(hold, 'VOID');
    hold.rejection = event;
  } else happenAfterPayout(hold, event);
}

function happenAfterPayout(
  hold: Hold,
  event: Exclude<MoneyEvent, 'LAPSE' | 'BUYER_ACTS' | 'BUYER_FAILS'>,
): void {
  const before = leftOf(hold);
  const endsDispute = event === 'DISPUTE_WON' || event === 'DISPUTE_LOST';
  if (before === 0n || (hold.status === 'DISPUTED') !== endsDispute) return;
  if (event === 'RETURN_FAILED' && hold.status !== 'PARTLY_RETURNED') return;
  const left = {
    RETURN_PART: before / 2n,
    RETURN_ALL: 0n,
    RETURN_FAILED: hold.amount ?? 0n,
    DISPUTE: before,
    DISPUTE_WON: before,
    DISPUTE_LOST: 0n,
  }[event];
  if (event === 'DISPUTE') hold.status = 'DISPUTED';
  else if (left === 0n) hold.status = 'RETURNED';
  else hold.status = left === hold.amount ? 'PAID_OUT' : 'PARTLY_RETURNED';
  hold.afterPayout?.push({ status: hold.status, left });
}

/** What the seller has of what was paid out, in minor units. */
function leftOf({ afterPayout, amount = 0n }: Hold): bigint {
  return afterPayout === undefined ? 0n : (afterPayout.at(-1)?.left ?? amount);
}

/** Where the money is, as the provider reports it. */
export function snapshotOf(hold: Hold): PaymentSnapshot {
  const { holdId, status, amount, currency, expiresAtMs, rejection } = hold;
  switch (status) {
    case 'ABSENT':
      return { status };
    case 'AWAITING_BUYER':
      return { status, nextActionUrl: `https://simulated-provider.invalid/act/${holdId}` };
    case 'VOID':
      return withReason({ status }, rejection);
    case 'HELD':
      return { status, amount, currency, reference: referenceOf(holdId), holdExpiresAtMs: expiresAtMs };
    case 'PARTLY_RETURNED':
      return { status, amount: leftOf(hold), currency, reference: referenceOf(holdId) };
    default:
      return { status, amount, currency, reference: referenceOf(holdId) };
  }
}

const referenceOf = (holdId: string) => `sim-hold-${holdId}`;

function withReason(payment: PaymentSnapshot, rejection: Rejection | undefined): PaymentSnapshot {
  return rejection === undefined ? payment : { ...payment, declined: rejections[rejection] };
}
