/** The most calls that wait for events at once: of all callers, and of one. */
export const pollsMax = { all: 1_000, ofCaller: 10 } as const;

/** Limits the calls that wait for events. */
export interface Polls {
  /** Adds a call. Above a limit, the oldest call has to end: of this caller, or of all callers. */
  begin(callerId: number): Poll;
  /** How many calls wait. */
  waiting(): number;
}

/** A waiting call, until it is disposed of. */
export interface Poll extends Disposable {
  /** Aborted when the call has to respond with the events that there are. */
  readonly signal: AbortSignal;
}

export function createPolls(): Polls {
  /** Oldest first. */
  const waiting = new Map<AbortController, number>();

  function endOldest(among: Iterable<AbortController>): void {
    const [oldest] = among;
    if (oldest === undefined) return;
    waiting.delete(oldest);
    oldest.abort();
  }

  return {
    begin: (callerId) => {
      const controller = new AbortController();
      waiting.set(controller, callerId);
      const own = [...waiting].flatMap(([each, owner]) => (owner === callerId ? [each] : []));
      if (own.length > pollsMax.ofCaller) endOldest(own);
      else if (waiting.size > pollsMax.all) endOldest(waiting.keys());
      return { signal: controller.signal, [Symbol.dispose]: () => waiting.delete(controller) };
    },
    waiting: () => waiting.size,
  };
}
