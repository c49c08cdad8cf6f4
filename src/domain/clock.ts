/** Where the service gets its time from, so that tests can hold it still. */
export interface Clock {
  /** Unix milliseconds; may be set back or forward. */
  nowMs(): number;
  /** Milliseconds from an arbitrary start; never goes back. */
  monotonicMs(): number;
  /** Calls back once, so many milliseconds from now by the monotonic clock. The returned function calls it off. */
  after(ms: number, callback: () => void): () => void;
}
