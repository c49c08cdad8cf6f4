import { isReturn } from '../../domain/payment.ts';
import type { PaymentInstruction } from '../provider.ts';
import type { Course, CourseEvent, Verdict } from './hold.ts';

/**
 * What goes wrong with a message.
 *
 * - SILENT: the provider never answers and does nothing.
 * - LOST_REQUEST, LOST_ANSWER: the first sending never arrives, or its answer is lost.
 * - SLOW: the answer takes `slowAnswerMs`.
 * - DUPLICATE: the instruction arrives twice.
 */
export type MessageFault = 'SILENT' | 'LOST_REQUEST' | 'LOST_ANSWER' | 'SLOW' | 'DUPLICATE';

/** What differs from an instruction that is carried out. */
export interface Behavior {
  readonly message?: MessageFault;
  readonly verdict?: Verdict;
  readonly course?: Course;
}

/** How long a slow answer takes, in milliseconds. */
export const slowAnswerMs = 3_000;
const shortHoldMs = 5_000;
/** The time until an event, and from one event to the next, in milliseconds. */
const stepMs = 5_000;

const inSteps = (...events: CourseEvent['event'][]): CourseEvent[] =>
  events.map((event, index) => ({ event, afterMs: (index + 1) * stepMs }));
const buyer = (...events: CourseEvent['event'][]): Behavior => ({ course: { buyer: inSteps(...events) } });
const afterPayout = (...events: CourseEvent['event'][]): Behavior => ({
  course: { afterPayout: inSteps(...events) },
});

/** What each documented prefix of a party id makes the provider do. */
const behaviors = {
  'sim-decline': () => ({ verdict: 'DECLINED' }),
  'sim-refuse-return': ({ kind }) => (isReturn(kind) ? { verdict: 'REFUSED' } : {}),
  'sim-silent': () => ({ message: 'SILENT' }),
  'sim-lost-answer': () => ({ message: 'LOST_ANSWER' }),
  'sim-lost-request': () => ({ message: 'LOST_REQUEST' }),
  'sim-slow': () => ({ message: 'SLOW' }),
  'sim-duplicate': () => ({ message: 'DUPLICATE' }),
  'sim-lapse': () => ({ course: { holdLastsMs: shortHoldMs } }),
  'sim-must-act': () => buyer('BUYER_ACTS'),
  'sim-must-act-fail': () => buyer('BUYER_FAILS'),
  'sim-must-act-never': () => buyer(),
  'sim-wrong-amount': ({ amount }) => ({ course: { amount: amount + 1n } }),
  'sim-contradiction': () => ({ course: { contradicts: true } }),
  'sim-refund-later': () => afterPayout('RETURN_ALL'),
  'sim-refund-part-later': () => afterPayout('RETURN_PART'),
  'sim-dispute-later': () => afterPayout('DISPUTE'),
  'sim-dispute-won-later': () => afterPayout('DISPUTE', 'DISPUTE_WON'),
  'sim-dispute-lost-later': () => afterPayout('DISPUTE', 'DISPUTE_LOST'),
} as const satisfies Record<string, (instruction: PaymentInstruction) => Behavior>;

type Prefix = keyof typeof behaviors;

/** The prefixes that party ids may begin with, longest first: the first that matches counts. */
export const partyPrefixes = (Object.keys(behaviors) as Prefix[]).sort((a, b) => b.length - a.length);

/**
 * What the provider does with an instruction: the buyerId decides for a FREEZE, the sellerId for what follows. A CANCEL is
 * carried out for every party except `sim-refuse-return`, so that orders end.
 */
export function behaviorFor(instruction: PaymentInstruction): Behavior {
  const { kind, buyerId, sellerId } = instruction;
  const partyId = kind === 'FREEZE' ? buyerId : sellerId;
  const prefix = partyPrefixes.find((candidate) => partyId.startsWith(candidate));
  if (prefix === undefined || (kind === 'CANCEL' && prefix !== 'sim-refuse-return')) return {};
  return behaviors[prefix](instruction);
}
