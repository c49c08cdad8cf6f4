/** Where the service gets its time from, so that tests can hold it still. */
export interface Clock {
  /** Unix milliseconds; may be set back or forward. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
}
