import { backoffMs } from '../../lib/timing.ts';

/** Bounds of the reconciliation of orders. All times are in milliseconds. */
export interface ReconciliationLimits {
  /** How long the provider may take to respond to a look-up or an instruction. */
  readonly answerTimeoutMs: number;
  /** How long an order may wait for its hold, from its opening. Then it is cancelled. */
  readonly freezeDeadlineMs: number;
  /** How long a buyer may take to act, from the request of the provider. Then the order is cancelled. */
  readonly buyerDeadlineMs: number;
  /** How long to wait after the first failed attempt. The wait doubles with each further one, up to the longest. */
  readonly firstRetryMs: number;
  readonly longestRetryMs: number;
  /** How many attempts in a row may fail before the order needs review. */
  readonly attemptsMax: number;
  /** How often to look up a hold, and an order that was just closed, without a notification. */
  readonly quietLookUpMs: number;
  /** How often to look up whether a buyer has acted. */
  readonly buyerLookUpMs: number;
  /** How long, from its opening, to look up an order that an operator closed without a provider status. */
  readonly closedLookUpsMs: number;
  /** How often to look up a RELEASED order, and how long after the last entry of its history. */
  readonly releasedLookUpMs: number;
  readonly releasedLookUpsMs: number;
  /** How long before a hold lapses each look-up logs it. */
  readonly holdWarningMs: number;
  /** How often to read the orders that are due. */
  readonly pollMs: number;
  /** Concurrent recoveries of orders that have not failed, and as many of orders that have. */
  readonly atOnce: number;
  /** How many of each one caller may have. */
  readonly atOncePerCaller: number;
  /** How many of each are kept for callers that have none. */
  readonly keptForOthers: number;
}

/** The limits of a serving process. */
export const reconciliationLimits: ReconciliationLimits = {
  answerTimeoutMs: 5_000,
  freezeDeadlineMs: 600_000,
  buyerDeadlineMs: 3_600_000,
  firstRetryMs: 1_000,
  longestRetryMs: 300_000,
  // Some five days.
  attemptsMax: 2_000,
  quietLookUpMs: 3_600_000,
  buyerLookUpMs: 30_000,
  // As long as a provider may remember an instruction that it has not carried out.
  closedLookUpsMs: 86_400_000,
  // 50 hours, so that a dispute is known days before it must be answered, which is 7 days at least. Not a multiple of a
  // day: otherwise a stop at the same hour of each day would always miss the same orders.
  releasedLookUpMs: 180_000_000,
  // 180 days.
  releasedLookUpsMs: 15_552_000_000,
  holdWarningMs: 86_400_000,
  pollMs: 500,
  atOnce: 32,
  atOncePerCaller: 16,
  keptForOthers: 16,
};

/** The random share of a delay: orders that failed together do not come back together. */
const jitterShare = 0.5;

/** Shortens a delay by a random part; `random` returns 0 to 1. */
export function jittered(delayMs: number, random: () => number): number {
  return Math.round(delayMs * (1 - jitterShare * random()));
}

/** Returns how long to wait after so many earlier failures in a row. */
export function retryDelayMs(
  { firstRetryMs: firstMs, longestRetryMs: longestMs }: ReconciliationLimits,
  failedAttempts: number,
  random: () => number,
): number {
  return jittered(backoffMs(failedAttempts + 1, { firstMs, longestMs }), random);
}
