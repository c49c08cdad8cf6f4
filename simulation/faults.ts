import type { PaymentSnapshot } from '../src/domain/payment.ts';
import type { Notification, PaymentInstruction, PaymentOrder } from '../src/payments/provider.ts';
import type { Course } from '../src/payments/simulated/hold.ts';
import { createDice } from './dice.ts';

/**
 * What goes wrong with one sending of an instruction.
 *
 * - DECLINE: no hold for the buyer, no payment to the seller; money still goes back.
 * - REFUSE: the same, and money that is held does not go back either.
 * - SHORT_HOLD: a hold that this makes lapses after `ms`.
 * - SLOW: carried out now, answered after `ms`.
 * - SILENT: never answered.
 * - LOST_ANSWER: carried out, and the connection breaks.
 * - LOST_REQUEST: the connection breaks, and it never arrives.
 * - LATE_REQUEST: the connection breaks, and it arrives after `ms`.
 * - DUPLICATE_REQUEST: carried out and answered, and it arrives again after `ms`.
 * - KEPT_BACK: nothing happens until `until` resolves with the fault that follows, even if the call was cancelled. If `until`
 *   rejects, the call does, and the instruction never arrives.
 */
export type InstructionFault =
  | { readonly kind: 'NONE' | 'DECLINE' | 'REFUSE' | 'LOST_ANSWER' | 'LOST_REQUEST' }
  | { readonly kind: 'SHORT_HOLD' | 'SLOW' | 'LATE_REQUEST' | 'DUPLICATE_REQUEST'; readonly ms: number }
  | { readonly kind: 'SILENT'; readonly carriedOut: boolean }
  | { readonly kind: 'KEPT_BACK'; readonly until: Promise<InstructionFault> };

/** What goes wrong with a look-up: the connection breaks, no answer comes, or one that is `ms` old. */
export type LookUpFault =
  | { readonly kind: 'NONE' | 'LOST' | 'SILENT' }
  | { readonly kind: 'SLOW'; readonly ms: number };

/** What goes wrong with a notification: it is never sent, sent twice, or sent `ms` late. */
export type NotificationFault =
  | { readonly kind: 'NONE' | 'LOST' | 'DUPLICATE' }
  | { readonly kind: 'LATE'; readonly ms: number };

/** Decides what goes wrong. */
export interface Script {
  instruction(instruction: PaymentInstruction): InstructionFault;
  lookUp(order: PaymentOrder): LookUpFault;
  notification(notification: Notification): NotificationFault;
  /** Whether an instruction that arrives again is answered, the default, or fails with DuplicateKey. */
  readonly repeats?: 'REPLAYED' | 'REFUSED';
  /** What happens to the money of an order after this instruction; nothing by default. */
  course?(instruction: PaymentInstruction): Course;
  /** What the provider reports instead of what its books say. */
  report?(order: PaymentOrder, truth: PaymentSnapshot): PaymentSnapshot;
}

/** Nothing goes wrong. */
export const faultless: Script = {
  instruction: () => ({ kind: 'NONE' }),
  lookUp: () => ({ kind: 'NONE' }),
  notification: () => ({ kind: 'NONE' }),
};

/** The longest delay of a fault, in milliseconds, if the rates do not say. */
const delayMaxFallbackMs = 10_000;

type Rates<Fault extends { readonly kind: string }> = Readonly<
  Partial<Record<Exclude<Fault['kind'], 'NONE' | 'KEPT_BACK'>, number>>
>;
type Shares = Readonly<Partial<Record<string, number>>>;

/** How often each fault happens: shares of all messages of the kind, from 0 to 1, together at most 1. */
export interface FaultRates {
  readonly instruction?: Rates<InstructionFault>;
  readonly lookUp?: Rates<LookUpFault>;
  readonly notification?: Rates<NotificationFault>;
  readonly delayMaxMs?: number;
}

/** Draws faults from a seed: the same ones for the same sequence of messages. */
export function seededScript(seed: string, rates: FaultRates): Script {
  const dice = createDice(seed);
  const { delayMaxMs = delayMaxFallbackMs } = rates;
  // Three draws a message, whatever the rates are, so that the draws of later messages stay the same.
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
