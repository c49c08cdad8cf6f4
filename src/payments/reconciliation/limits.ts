import { backoffMs } from '../../lib/timing.ts';

/** The limits of a serving process. All times are in milliseconds. */
export const reconciliationLimits = {
  /** How long the provider may take to respond to a look-up or an instruction. */
  answerTimeoutMs: 5_000,
  /** How long an order may wait for its hold, from its opening. Then it is cancelled. */
  freezeDeadlineMs: 600_000,
  /** How long a buyer may take to act, from the request of the provider. Then the order is cancelled. */
  buyerDeadlineMs: 3_600_000,
  /** How long to wait after the first failed attempt. The wait doubles with each further one, up to the longest. */
  firstRetryMs: 1_000,
  longestRetryMs: 300_000,
  /** How many attempts in a row may fail before the order needs review: some five days. */
  attemptsMax: 2_000,
  /** How often to look up a hold, and an order that was just closed, without a notification. */
  quietLookUpMs: 3_600_000,
  /** How often to look up whether a buyer has acted. */
  buyerLookUpMs: 30_000,
  /**
   * How long, from its opening, to look up an order that an operator closed without a provider status: as long as a provider
   * may remember an instruction that it has not carried out.
   */
  closedLookUpsMs: 86_400_000,
  /**
   * How often to look up a RELEASED order: 50 hours, so that a dispute is known days before it must be answered, which is 7
   * days at least. Not a multiple of a day: otherwise a stop at the same hour of each day would always miss the same orders.
   */
  releasedLookUpMs: 180_000_000,
  /** How long to do so, after the last entry of its history: 180 days. */
  releasedLookUpsMs: 15_552_000_000,
  /** How long before a hold lapses each look-up logs it. */
  holdWarningMs: 86_400_000,
  /** How often to read the orders that are due. */
  pollMs: 500,
  /** Concurrent recoveries of orders that have not failed, and as many of orders that have. */
  atOnce: 32,
  /** How many of each one caller may have. */
  atOncePerCaller: 16,
  /** How many of each are kept for callers that have none. */
  keptForOthers: 16,
};

/** Bounds of the reconciliation of orders. */
export type ReconciliationLimits = Readonly<typeof reconciliationLimits>;

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
