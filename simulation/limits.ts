import type { ReconciliationLimits } from '../src/payments/reconciliation/limits.ts';
import type { FaultRates } from './faults.ts';

/** The timeout of the simulated service: that of a real one, about ten times as hurried. */
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

/** How big and how patient the simulated world is. All times are in simulated milliseconds. */
export const worldLimits = {
  platforms: 3,
  /** Calls a month of the platform that has few. */
  monthlyQuota: 40,
  /** Calls that it makes at once, at most: more than it has a second. */
  crowdMax: 15,
  /** Sessions under way at the same time. */
  clientsAtOnce: 64,
  /** Sendings of one request until its client gives up. */
  triesMax: 6,
  /** Sales of one artwork, one after the other. */
  salesMax: 3,
  /** The longest that time passes at once. */
  stepMaxMs: 250,
  /** FairQueue of the event loop between two steps of time, at most. */
  turnsMax: 3,
  /** How long a graceful end waits for the calls in flight. */
  drainMs: 10_000,
  /** The longest that the service, or the provider, stays down. */
  downMaxMs: 2_000,
  /** How far the wall clock is set back or forward at most. */
  wallJumpMaxMs: 120_000,
  /** For how long a key answers with the error that is saved under it. */
  savedErrorMs: 100_000,
  savedErrorDelayMs: 2_000,
  /** The longest that a buyer takes to act: more than the service waits. */
  buyerActsMaxMs: 1.3 * simulatedLimits.buyerDeadlineMs,
  /** The longest between two things that happen to money after its pay-out. */
  afterPayoutMaxMs: 60_000,
  /** How long it takes at most, when nothing goes wrong, until an order is ended whose time is over. */
  endingMs: simulatedLimits.buyerLookUpMs + 2 * simulatedLimits.longestRetryMs,
  /** How long the world is left alone at the end: all that is due by any clock has had its turn by then. */
  calmMs: 2.2 * simulatedLimits.quietLookUpMs,
  /** Simulated time until a run counts as hung, for each order and in any case. */
  patiencePerOrderMs: 60_000,
  timeoutMs: 7_200_000,
  /** Statements of a transaction until something befalls it, at most; if it has fewer, at its commit. */
  statementsMax: 12,
  /** Events of an order that a failure shows. */
  eventsShown: 80,
} as const;

/** How often something strikes: one in so many occasions. */
export const odds = {
  /** The service is killed in a transaction that writes: more often where orders are few. */
  killInBatch: (orders: number) => Math.max(50, orders / 4),
  /** It is killed after a commit, or at a call to the provider. */
  killAtPoint: (orders: number) => Math.max(100, orders / 2),
  /** The disk fails a transaction, now and then. */
  diskFault: 200,
  /** Somebody sends a call again that was answered, as it was. */
  replay: 20,
  /** The provider is killed before or after a call. */
  providerKillAtCall: 250,
  /** The first sending of a hold ends in an error that is saved under its key, where there are such keys. */
  savedError: 15,
  /** A buyer who has to act, where buyers are asked to. */
  mustAct: 6,
  /** Money to which something happens after its pay-out. */
  afterPayout: 3,
  /** A person ends the waiting of an order that nobody asked them about. */
  impatience: 4,
  /** An order whose amount the provider reports wrongly. */
  differs: 12,
} as const;

/** How long it is between two strikes of the same kind, at most, in simulated milliseconds. */
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

/** How much goes wrong at the provider for a while. */
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
