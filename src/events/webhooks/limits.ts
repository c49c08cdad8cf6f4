/** How much the sender of a serving process does at a time, and how long it waits. */
export const sendingLimits = {
  /** Concurrent requests to an endpoint whose last attempt succeeded. A failing endpoint gets one. */
  atOncePerEndpoint: 4,
  /** Concurrent requests to all endpoints of a caller. */
  atOncePerCaller: 20,
  /** Concurrent requests to all healthy endpoints, and to all failing ones. */
  atOnce: 256,
  atOnceFailing: 64,
  /**
   * While the store has more than `quietRequestsMax` requests of others, API calls are waiting. The sender then starts at
   * most `startsPerPeriod` deliveries and claims in `periodMs`, because each takes CPU time from these calls: 100 a second,
   * some 8 million a day.
   */
  startsPerPeriod: 5,
  periodMs: 50,
  quietRequestsMax: 8,
  /** Deliveries that one claim returns. */
  window: 32,
  /** Claimed deliveries in memory, of all endpoints. Above it, only callers that have none get a few. */
  queuedMax: 2_048,
  /** Concurrent claims. */
  claimsAtOnce: 16,
  /** The shortest time from a claim that returned everything to the next claim for the endpoint. */
  claimPauseMs: 100,
  /** The longest timer: deliveries are due by the wall clock, which the operator may set. */
  timerMaxMs: 60_000,
  /** How often all endpoints are listed. The second one counts if other instances may change them. */
  listEveryMs: 5_000,
  listSharedEveryMs: 500,
  /** How long results are collected before they are recorded, and how many one store request records. */
  batchMs: 50,
  batchMax: 200,
  /** Results in memory that are not recorded. Above it, no request starts. */
  unrecordedMax: 1_000,
  /** How long to wait after a failed attempt at an endpoint. The wait doubles with each failure. */
  endpointBackoff: { firstMs: 100, longestMs: 1_000 },
  /** How long to wait after a failed store request. The wait doubles with each failure. */
  storeBackoff: { firstMs: 100, longestMs: 5_000 },
  /** The shortest time between two log lines that say whether an endpoint works. */
  logEveryMs: 60_000,
  /** How long `stop` waits for requests in flight. */
  stopTimeoutMs: 5_000,
};

/** The limits of a sender. */
export type SendingLimits = Readonly<typeof sendingLimits>;
