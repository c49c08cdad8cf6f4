/** Whether a call is within its caller's rate, and how much of the burst is left. */
export interface RateDecision {
  /** The allowed rate. The burst has the same size. */
  readonly callsPerSecond: number;
  readonly allowed: boolean;
  /** Further calls that are allowed now. */
  readonly remaining: number;
  /** Whole seconds until the full burst is available again, at least 1. */
  readonly resetS: number;
  /** Whole seconds until a call is allowed, at least 1; 0 if this one is allowed. */
  readonly retryAfterS: number;
}

/** Limits the rate of calls of each caller. */
export interface RateLimit {
  /** Takes one call of a caller with a rate of `callsPerSecond`. A rejected call uses nothing up. */
  take(callerId: number, callsPerSecond: number): RateDecision;
}

/** Tolerance for rounding errors in sums of intervals, in milliseconds. */
const toleranceMs = 1e-6;

/**
 * GCRA, the generic cell rate algorithm: a caller may send a burst of N calls and then one every 1/N s. It stores one number
 * per caller, the theoretical arrival time: when the full burst is available again.
 */
export function createRateLimit(monotonicMs: () => number): RateLimit {
  const arrivals = new Map<number, number>();
  return {
    take: (callerId, callsPerSecond) => {
      const now = monotonicMs();
      const intervalMs = 1000 / callsPerSecond;
      const burstMs = intervalMs * callsPerSecond;
      const before = Math.max(arrivals.get(callerId) ?? now, now);
      const excessMs = before + intervalMs - now - burstMs;
      const allowed = excessMs <= toleranceMs;
      const arrival = allowed ? before + intervalMs : before;
      arrivals.set(callerId, arrival);
      return {
        callsPerSecond,
        allowed,
        remaining: Math.floor((burstMs - (arrival - now) + toleranceMs) / intervalMs),
        resetS: Math.max(1, Math.ceil((arrival - now) / 1000)),
        retryAfterS: allowed ? 0 : Math.max(1, Math.ceil(excessMs / 1000)),
      };
    },
  };
}
