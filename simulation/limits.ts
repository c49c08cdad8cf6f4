import type { ReconciliationLimits } from '../src/payments/reconciliation/limits.ts';
import type { FaultRates } from './faults.ts';

/** The time limits of the simulated service: about a tenth of the real ones. */
export const simulatedLimits: ReconciliationLimits = {
  answerTimeoutMs: 5_000,
  freezeDeadlineMs: 60_000,
  buyerDeadlineMs: 120_000,
  firstRetryMs: 500,
  longestRetryMs: 20_000,
  attemptsMax: 1_000,
  quietLookUpMs: 400_000,
  buyerLookUpMs: 3_000,
  closedLookUpsMs: 2_000_000,
  releasedLookUpMs: 600_000,
  releasedLookUpsMs: 1_000_000_000,
  holdWarningMs: 600_000,
  pollMs: 1_000,
  atOnce: 8,
  atOncePerCaller: 4,
  keptForOthers: 2,
};

/** The sizes and time limits of a simulation. Times are in simulated milliseconds. */
export const worldLimits = {
  platforms: 3,
  /** The monthly quota of the limited platform. */
  monthlyQuota: 40,
  /** The most calls that the limited platform makes concurrently: more than its rate limit. */
  crowdMax: 15,
  /** Concurrent sessions. */
  clientsAtOnce: 64,
  /** Attempts of one request until its client gives up. */
  triesMax: 6,
  /** The most sales of one artwork, one after the other. */
  salesMax: 3,
  /** The longest step of the clock. */
  stepMaxMs: 250,
  /** The most turns of the event loop between two steps of the clock. */
  turnsMax: 3,
  /** How long a graceful stop waits for open calls. */
  drainMs: 10_000,
  /** The longest downtime of the service and of the provider. */
  downMaxMs: 2_000,
  /** The largest jump of the wall clock, back or forward. */
  wallJumpMaxMs: 120_000,
  /** How long a key returns the error that is saved under it. */
  savedErrorMs: 100_000,
  savedErrorDelayMs: 2_000,
  /** The longest time that a buyer takes to act: longer than the deadline of the service. */
  buyerActsMaxMs: 1.3 * simulatedLimits.buyerDeadlineMs,
  /** The longest time between two events after a pay-out. */
  afterPayoutMaxMs: 60_000,
  /** The longest time from the deadline of an order until the service closes it, without faults. */
  endingMs: simulatedLimits.buyerLookUpMs + 2 * simulatedLimits.longestRetryMs,
  /** The time without faults at the end: long enough for everything that is due by any clock. */
  calmMs: 2.2 * simulatedLimits.quietLookUpMs,
  /** The simulated time until a run counts as hung: an amount for each order, plus a constant. */
  timeoutPerOrderMs: 60_000,
  timeoutMs: 7_200_000,
  /** The most statements of a transaction before a fault. If it has fewer, the fault is at the commit. */
  statementsMax: 12,
  /** How long the clock waits for PostgreSQL and for an instance that leads, in real milliseconds. */
  busyMaxMs: 60_000,
  /** How many events a failure shows. */
  eventsShown: 80,
} as const;

/** How often each event occurs: one in N. */
export const odds = {
  /** The service is killed in a write transaction. More often if there are few orders. */
  killInBatch: (orders: number) => Math.max(50, orders / 4),
  /** The service is killed after a commit, or before or after a call to the provider. */
  killAtPoint: (orders: number) => Math.max(100, orders / 2),
  /** The disk fails in a transaction, or the connection to PostgreSQL is lost. */
  storeFault: 200,
  /** An attacker replays a signed call. */
  replay: 20,
  /** The provider is killed before or after a call. */
  providerKillAtCall: 250,
  /** The first attempt of a FREEZE ends with an error that is saved under its key, if the provider saves errors. */
  savedError: 15,
  /** A buyer has to act, if the provider may require it. */
  mustAct: 6,
  /** The money of an order changes after its pay-out. */
  afterPayout: 3,
  /** An operator closes or stops an order that is not in review. */
  endWaiting: 4,
  /** The provider reports a wrong amount for an order. */
  differs: 12,
} as const;

/** The longest time between two events of the same kind, in simulated milliseconds. The names seed the random draws. */
export const strikesMs = {
  kill: 90_000,
  stop: 150_000,
  providerKill: 150_000,
  wallJump: 120_000,
  weather: 60_000,
  lapse: 40_000,
  decision: 15_000,
  look: 10_000,
} as const;

/** The fault rates of the provider at each level. The simulation changes the level at random intervals. */
export const faultLevels: Readonly<Record<'CLEAR' | 'ROUGH' | 'STORM', FaultRates>> = {
  CLEAR: {},
  ROUGH: {
    delayMaxMs: 4_000,
    instruction: {
      DECLINE: 0.05,
      SHORT_HOLD: 0.03,
      SLOW: 0.08,
      SILENT: 0.05,
      LOST_ANSWER: 0.08,
      LOST_REQUEST: 0.06,
      LATE_REQUEST: 0.05,
      DUPLICATE_REQUEST: 0.1,
    },
    lookUp: { LOST: 0.08, SILENT: 0.04, SLOW: 0.1 },
    notification: { LOST: 0.15, DUPLICATE: 0.15, LATE: 0.3 },
  },
  STORM: {
    delayMaxMs: 90_000,
    instruction: {
      DECLINE: 0.08,
      SHORT_HOLD: 0.1,
      SLOW: 0.12,
      SILENT: 0.12,
      LOST_ANSWER: 0.15,
      LOST_REQUEST: 0.1,
      LATE_REQUEST: 0.12,
      DUPLICATE_REQUEST: 0.08,
    },
    lookUp: { LOST: 0.15, SILENT: 0.1, SLOW: 0.2 },
    notification: { LOST: 0.3, DUPLICATE: 0.2, LATE: 0.4 },
  },
};
