/** Whether a call is within the rate of its caller, and what is left after it. */
export interface RateDecision {
  /** The rate that the caller is allowed, which is its burst as well. */
  readonly callsPerSecond: number;
  readonly allowed: boolean;
  /** Calls that would be let in at this moment. */
  readonly remaining: number;
  /** Whole seconds until the whole burst is there again, at least 1. */
  readonly resetS: number;
  /** Whole seconds until a call is let in, at least 1; 0 if this one was. */
  readonly retryAfterS: number;
}

/** Limits the rate of calls of each caller. */
export interface RateLimit {
  /** Asks for one call of a caller that is allowed `callsPerSecond`; a refused call costs nothing. */
  take(callerId: number, callsPerSecond: number): RateDecision;
}

/** Absorbs the rounding of sums of intervals, in milliseconds. */
const toleranceMs = 1e-6;

/**
 * GCRA, the generic cell rate algorithm: a caller may burst N calls and then one every 1/N s. It keeps one
 * number a caller, the theoretical arrival time: when the caller's burst will be whole again.
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
