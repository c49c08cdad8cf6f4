/** How much is sent at a time, and how patient sending is. */
export interface SendingLimits {
  /** Requests under way to an endpoint whose last attempt did not fail; to others there is one. */
  readonly atOncePerEndpoint: number;
  /** Requests under way to all endpoints of a caller. */
  readonly atOncePerCaller: number;
  /** Requests under way to endpoints whose last attempt did not fail, and to those whose did. */
  readonly atOnce: number;
  readonly atOnceFailing: number;
  /**
   * Requests, and questions what is to be sent, that are begun in so many milliseconds while more units of others than these are at
   * the store: calls wait then, and each of these takes as much of the process as some of them do.
   */
  readonly begunPerPace: number;
  readonly paceMs: number;
  readonly unitsQuietMax: number;
  /** Deliveries of an endpoint that are taken at a time. */
  readonly window: number;
  /**
   * Deliveries of all endpoints that are taken and not begun, so that slow receivers do not fill the memory; beyond it a few are
   * taken for each caller that has none there.
   */
  readonly queuedMax: number;
  /** Endpoints for which the store is asked at the same time. */
  readonly looksAtOnce: number;
  /** How long after an endpoint had nothing more to be sent it is looked again, at the earliest. */
  readonly lookPauseMs: number;
  /** How far ahead a turn is planned at most: what is due is due by the wall clock, which may be set. */
  readonly aheadMaxMs: number;
  /** How often all endpoints are listed, for those that others changed. */
  readonly listEveryMs: number;
  /** How long what came of attempts is gathered, and how many outcomes are written down at a time. */
  readonly gatherMs: number;
  readonly gatherMax: number;
  /** DeliveryResults that are not written down; with more of them nothing is begun. */
  readonly unwrittenMax: number;
  /** How long an endpoint is left alone after a failed attempt; it doubles with each further one, up to the longest. */
  readonly firstPauseMs: number;
  readonly longestPauseMs: number;
  /** The same for the store, while it cannot be used. */
  readonly firstStorePauseMs: number;
  readonly longestStorePauseMs: number;
  /** How often it is logged at most that an endpoint fails, or works again. */
  readonly tellEveryMs: number;
  /** How long requests that are under way are waited for at the end. */
  readonly endMs: number;
}

/** The limits of a serving process. */
export const sendingLimits: SendingLimits = {
  atOncePerEndpoint: 4,
  atOncePerCaller: 20,
  atOnce: 256,
  atOnceFailing: 64,
  // 100 a second, some 8 million a day.
  begunPerPace: 5,
  paceMs: 50,
  unitsQuietMax: 8,
  window: 32,
  queuedMax: 2_048,
  looksAtOnce: 16,
  lookPauseMs: 100,
  aheadMaxMs: 60_000,
  listEveryMs: 5_000,
  gatherMs: 50,
  gatherMax: 200,
  unwrittenMax: 1_000,
  firstPauseMs: 100,
  longestPauseMs: 1_000,
  firstStorePauseMs: 100,
  longestStorePauseMs: 5_000,
  tellEveryMs: 60_000,
  endMs: 5_000,
};

/** How long to wait after so many failures in a row, from 1: it doubles with each. */
export function pauseMs(failures: number, firstMs: number, longestMs: number): number {
  return Math.min(longestMs, firstMs * 2 ** (failures - 1));
}
