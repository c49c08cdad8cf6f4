/** How patient the reconciliation of orders is. All times are in milliseconds. */
export interface ReconciliationLimits {
  /** How long the provider may take over one question or instruction. */
  readonly answerTimeoutMs: number;
  /** How long an order may wait for its hold, from its opening; then it is cancelled. */
  readonly freezeDeadlineMs: number;
  /** How long a buyer may take to act, from when the provider asked for it; then the order is cancelled. */
  readonly buyerDeadlineMs: number;
  /** How long to wait after the first attempt that failed; it doubles with each further one, up to the longest. */
  readonly firstRetryMs: number;
  readonly longestRetryMs: number;
  /** How many attempts in a row may fail; then a person has to look. */
  readonly attemptsMax: number;
  /** How often the provider is asked about a hold that no notification comes about, and when about an order just closed. */
  readonly quietLookUpMs: number;
  /** How often it is asked whether a buyer has acted. */
  readonly buyerLookUpMs: number;
  /** For how long, from its opening, an order is asked about that a person closed without a word of the provider. */
  readonly closedLookUpsMs: number;
  /** How often the provider is asked about a RELEASED order, and for how long after the last entry of its history. */
  readonly releasedLookUpMs: number;
  readonly releasedLookUpsMs: number;
  /** How long before a hold lapses this is logged at each look-up. */
  readonly holdWarningMs: number;
  /** How often to see whether an order is due. */
  readonly pollMs: number;
  /** Orders in recovery at the same time whose last attempt did not fail; as many again of those whose did. */
  readonly atOnce: number;
  /** How many of either one caller may have. */
  readonly atOncePerCaller: number;
  /** How many places of either are kept for callers that have no other order there. */
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

/** How much of a delay is left to chance, so that orders that failed together do not come back together. */
const jitterShare = 0.5;

/** A delay with jitter; `random` gives a number from 0 to 1. */
export function jittered(delayMs: number, random: () => number): number {
  return Math.round(delayMs * (1 - jitterShare * random()));
}

/** How long to wait after so many failed attempts in a row, from 0. */
export function retryDelayMs(
  limits: ReconciliationLimits,
  failedAttempts: number,
  random: () => number,
): number {
  const { firstRetryMs, longestRetryMs } = limits;
  return jittered(Math.min(longestRetryMs, firstRetryMs * 2 ** failedAttempts), random);
}
