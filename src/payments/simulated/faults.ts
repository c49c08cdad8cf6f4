import type { PaymentSnapshot } from '../../domain/payment.ts';
import type { PaymentInstruction, PaymentOrder } from '../provider.ts';
import type { Course } from './course.ts';
import type { HoldEvent } from './notifications.ts';

/**
 * What goes wrong with one sending of an instruction.
 *
 * - DECLINE: no hold for the buyer, nothing paid out to the seller; money goes back without asking anybody.
 * - REFUSE: the provider itself says no: as DECLINE, and money that is held does not go back either.
 * - SHORT_HOLD: a hold that this makes runs out after `ms`.
 * - SLOW: carried out now, answered after `ms`.
 * - SILENT: never answered.
 * - LOST_ANSWER: carried out, and the connection breaks.
 * - LOST_REQUEST: the connection breaks, and it never arrives.
 * - LATE_REQUEST: the connection breaks, and it arrives after `ms` all the same.
 * - DUPLICATE_REQUEST: carried out and answered, and it arrives again after `ms`.
 * - KEPT_BACK: nothing is done until `until` resolves with how it is met, which it is then even if its call was given up;
 *   where `until` rejects, the connection breaks with that error, and it never arrives. A kill forgets what is kept back.
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

/**
 * What goes wrong with one delivery of a notification: it never leaves, leaves `ms` late, is delivered twice,
 * or is kept back until another one has left.
 */
export type NotificationFault =
  | { readonly kind: 'NONE' | 'LOST' | 'DUPLICATE' | 'REORDERED' }
  | { readonly kind: 'LATE'; readonly ms: number };

/** Says what goes wrong. Attempts are counted from 1, over restarts of the simulator. */
export interface Script {
  instruction(instruction: PaymentInstruction, attempt: number): InstructionFault;
  lookUp(order: PaymentOrder): LookUpFault;
  notification(notification: HoldEvent, attempt: number): NotificationFault;
  /** Whether an instruction that arrives again is answered, as if not given, or fails with DuplicateKey. */
  readonly repeats?: 'REPLAYED' | 'REFUSED';
  /** What becomes of the money of an order by itself, as of an instruction; nothing if not given. */
  course?(instruction: PaymentInstruction): Course;
  /** What is answered to an instruction or a look-up in place of what the books say; the truth if not given. */
  report?(question: PaymentInstruction | PaymentOrder, truth: PaymentSnapshot): PaymentSnapshot;
}

/** Nothing goes wrong; other scripts are made of this one. */
export const faultless: Script = {
  instruction: () => ({ kind: 'NONE' }),
  lookUp: () => ({ kind: 'NONE' }),
  notification: () => ({ kind: 'NONE' }),
};
