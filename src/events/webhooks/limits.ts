/** How much the sender does at a time, and how long it waits. */
export interface SendingLimits {
  /** Concurrent requests to an endpoint whose last attempt succeeded. A failing endpoint gets one. */
  readonly atOncePerEndpoint: number;
  /** Concurrent requests to all endpoints of a caller. */
  readonly atOncePerCaller: number;
  /** Concurrent requests to all healthy endpoints, and to all failing ones. */
  readonly atOnce: number;
  readonly atOnceFailing: number;
  /**
   * While the store has more than `quietRequestsMax` requests of others, API calls are waiting. The sender then starts at
   * most `startsPerPeriod` deliveries and claims in `periodMs`, because each takes CPU time from these calls.
   */
  readonly startsPerPeriod: number;
  readonly periodMs: number;
  readonly quietRequestsMax: number;
  /** Deliveries that one claim returns. */
  readonly window: number;
  /** Claimed deliveries in memory, of all endpoints. Above it, only callers that have none get a few. */
  readonly queuedMax: number;
  /** Concurrent claims. */
  readonly claimsAtOnce: number;
  /** The shortest time from a claim that returned everything to the next claim for the endpoint. */
  readonly claimPauseMs: number;
  /** The longest timer: deliveries are due by the wall clock, which the operator may set. */
  readonly timerMaxMs: number;
  /** How often all endpoints are listed, to find what another process changed. */
  readonly listEveryMs: number;
  /** How long results are collected before they are recorded, and how many one store request records. */
  readonly batchMs: number;
  readonly batchMax: number;
  /** Results in memory that are not recorded. Above it, no request starts. */
  readonly unrecordedMax: number;
  /** How long to wait after a failed attempt at an endpoint. */
  readonly endpointBackoff: Backoff;
  /** How long to wait after a failed store request. */
  readonly storeBackoff: Backoff;
  /** The shortest time between two log lines that say whether an endpoint works. */
  readonly logEveryMs: number;
  /** How long `stop` waits for requests in flight. */
  readonly stopTimeoutMs: number;
}

/** The wait doubles with each failure, from the first to the longest. */
export interface Backoff {
  readonly firstMs: number;
  readonly longestMs: number;
}

/** The limits of a serving process. */
export const sendingLimits: SendingLimits = {
  atOncePerEndpoint: 4,
  atOncePerCaller: 20,
  atOnce: 256,
  atOnceFailing: 64,
  // 100 a second, some 8 million a day.
  startsPerPeriod: 5,
  periodMs: 50,
  quietRequestsMax: 8,
  window: 32,
  queuedMax: 2_048,
  claimsAtOnce: 16,
  claimPauseMs: 100,
  timerMaxMs: 60_000,
  listEveryMs: 5_000,
  batchMs: 50,
  batchMax: 200,
  unrecordedMax: 1_000,
  endpointBackoff: { firstMs: 100, longestMs: 1_000 },
  storeBackoff: { firstMs: 100, longestMs: 5_000 },
  logEveryMs: 60_000,
  stopTimeoutMs: 5_000,
};
