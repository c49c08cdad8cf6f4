/** Where the service gets its time from, so that tests can hold it still. */
export interface Clock {
  /** Unix milliseconds; may be set back or forward. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
  /** Calls back once, so many milliseconds from now by the monotonic clock. The returned function calls it off. */
  after(ms: number, callback: () => void): () => void;
}

/**
 * The clock of deadlines, retries, months and retention: the real one, and ahead of it in a sandbox whose clock an operator
 * advanced. Evidence, credentials and the audit log have the real time.
 */
export interface BusinessClock extends Clock {
  /** By how much it is ahead of the real clock, in milliseconds. */
  aheadMs(): number;
  /** Sets it ahead by so many seconds, unless it is as far ahead already. */
  setAhead(seconds: number): void;
  /** Calls back each time that it was set further ahead, since orders and deliveries may be due then. */
  onAdvance(listener: () => void): void;
}

/** The most that the clock of a sandbox can be ahead, in seconds: ten years. */
export const aheadMaxS = 315_360_000;

/** Creates the business clock of a process. Its wall clock is the real one until it is set ahead. */
export function createBusinessClock(real: Clock): BusinessClock {
  let aheadMs = 0;
  const listeners: (() => void)[] = [];
  return {
    nowMs: () => real.nowMs() + aheadMs,
    monotonicMs: () => real.monotonicMs(),
    after: (ms, callback) => real.after(ms, callback),
    aheadMs: () => aheadMs,
    setAhead: (seconds) => {
      if (seconds * 1_000 <= aheadMs) return;
      aheadMs = seconds * 1_000;
      for (const listener of listeners) listener();
    },
    onAdvance: (listener) => void listeners.push(listener),
  };
}
