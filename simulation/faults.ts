import type { PaymentSnapshot } from '../src/domain/payment.ts';
import type { Notification, PaymentInstruction, PaymentOrder } from '../src/payments/provider.ts';
import type { Course } from '../src/payments/simulated/hold.ts';
import { createDice } from './dice.ts';

/**
 * A fault in one attempt to send an instruction.
 *
 * - DECLINE: the provider declines a FREEZE or RELEASE. It still returns money.
 * - REFUSE: the provider declines a FREEZE or RELEASE, and does not return money that is held.
 * - SHORT_HOLD: the hold lapses `ms` after the instruction made it.
 * - SLOW: the provider executes the instruction now, and responds after `ms`.
 * - SILENT: the provider never responds. `carriedOut` says whether it executes the instruction.
 * - LOST_ANSWER: the provider executes the instruction, then the connection breaks.
 * - LOST_REQUEST: the connection breaks, and the instruction never arrives.
 * - LATE_REQUEST: the connection breaks, and the instruction arrives after `ms`.
 * - DUPLICATE_REQUEST: the provider executes the instruction and responds. The instruction arrives again after `ms`.
 * - KEPT_BACK: the instruction waits until `until` resolves with its fault, even if the call was cancelled. If `until`
 *   rejects, the call rejects, and the instruction never arrives.
 */
export type InstructionFault =
  | { readonly kind: 'NONE' | 'DECLINE' | 'REFUSE' | 'LOST_ANSWER' | 'LOST_REQUEST' }
  | { readonly kind: 'SHORT_HOLD' | 'SLOW' | 'LATE_REQUEST' | 'DUPLICATE_REQUEST'; readonly ms: number }
  | { readonly kind: 'SILENT'; readonly carriedOut: boolean }
  | { readonly kind: 'KEPT_BACK'; readonly until: Promise<InstructionFault> };

/** A fault in a look-up: the connection breaks, no response comes, or the response comes `ms` late and is outdated. */
export type LookUpFault =
  | { readonly kind: 'NONE' | 'LOST' | 'SILENT' }
  | { readonly kind: 'SLOW'; readonly ms: number };

/** A fault in a notification: it is never sent, sent twice, or sent `ms` late. */
export type NotificationFault =
  | { readonly kind: 'NONE' | 'LOST' | 'DUPLICATE' }
  | { readonly kind: 'LATE'; readonly ms: number };

/** Decides the fault of each message. */
export interface Script {
  instruction(instruction: PaymentInstruction): InstructionFault;
  lookUp(order: PaymentOrder): LookUpFault;
  notification(notification: Notification): NotificationFault;
  /** An instruction that arrives again gets the status of its hold (REPLAYED, the default) or fails (REFUSED). */
  readonly repeats?: 'REPLAYED' | 'REFUSED';
  /** The course of the money after this instruction; by default it has no events. */
  course?(instruction: PaymentInstruction): Course;
  /** Replaces the payment that the provider reports. */
  report?(order: PaymentOrder, truth: PaymentSnapshot): PaymentSnapshot;
}

/** A script without faults. */
export const faultless: Script = {
  instruction: () => ({ kind: 'NONE' }),
  lookUp: () => ({ kind: 'NONE' }),
  notification: () => ({ kind: 'NONE' }),
};

/** The default of `delayMaxMs`. */
const delayMaxFallbackMs = 10_000;

type Rates<Fault extends { readonly kind: string }> = Readonly<
  Partial<Record<Exclude<Fault['kind'], 'NONE' | 'KEPT_BACK'>, number>>
>;
type Shares = Readonly<Partial<Record<string, number>>>;

/** The probability of each fault, from 0 to 1, for each kind of message. The sum for a kind is at most 1. */
export interface FaultRates {
  readonly instruction?: Rates<InstructionFault>;
  readonly lookUp?: Rates<LookUpFault>;
  readonly notification?: Rates<NotificationFault>;
  /** The longest delay of a fault, in milliseconds. */
  readonly delayMaxMs?: number;
}

/** Draws faults from a seed. The same sequence of messages gets the same faults. */
export function seededScript(seed: string, rates: FaultRates): Script {
  const dice = createDice(seed);
  const { delayMaxMs = delayMaxFallbackMs } = rates;
  // Always three draws for a message, so that the rates do not change the draws for later messages.
  const fault = (shares: Shares = {}) => ({
    kind: pick(shares, dice.share()),
    ms: dice.upTo(delayMaxMs),
    carriedOut: dice.oneIn(2),
  });
  return {
    instruction: () => fault(rates.instruction) as InstructionFault,
    lookUp: () => fault(rates.lookUp) as LookUpFault,
    notification: () => fault(rates.notification) as NotificationFault,
  };
}

function pick(shares: Shares, drawn: number): string {
  let below = 0;
  for (const [kind, share = 0] of Object.entries(shares)) {
    below += share;
    if (drawn < below) return kind;
  }
  return 'NONE';
}
