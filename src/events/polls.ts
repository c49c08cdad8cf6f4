/** Calls that wait for events at the same time: of all callers, and of one. */
export const pollsMax = { all: 1_000, ofCaller: 10 } as const;

/** The calls that wait for events. */
export interface Polls {
  /** Takes in a call of a caller. If there are too many then, the oldest of that caller or else of all is to end. */
  begin(callerId: number): Poll;
  /** How many wait. */
  waiting(): number;
}

/** One of them, until it is disposed of. */
export interface Poll extends Disposable {
  /** Aborted when it is to answer with what there is. */
  readonly signal: AbortSignal;
}

/** No call waits. */
export function createPolls(): Polls {
  /** The oldest first. */
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
      const own = [...waiting].flatMap(([each, of]) => (of === callerId ? [each] : []));
      if (own.length > pollsMax.ofCaller) endOldest(own);
      else if (waiting.size > pollsMax.all) endOldest(waiting.keys());
      return { signal: controller.signal, [Symbol.dispose]: () => waiting.delete(controller) };
    },
    waiting: () => waiting.size,
  };
}
