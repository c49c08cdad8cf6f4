import type { Clock } from '../domain/clock.ts';
import { sleep } from '../lib/timing.ts';
import type { Store } from '../store/store.ts';

/** The shortest time between two wakes of listeners, in milliseconds. Each listener reads the store when it is woken. */
export const wakeEveryMs = 50;

/** Wakes listeners when there may be events. */
export type Feed = ReturnType<typeof createFeed>;

export function createFeed(store: Pick<Store, 'onEvents'>, clock: Pick<Clock, 'after'>) {
  const listeners = new Set<{ readonly callerId: number | undefined; notify(): void; endWait(): void }>();
  /** Callers with events that no listener was woken for. */
  const changed = new Set<number>();
  let isPaused = false;
  let isEnded = false;

  function wake(): void {
    for (const listener of listeners) {
      if (listener.callerId === undefined || changed.has(listener.callerId)) listener.notify();
    }
    changed.clear();
    isPaused = true;
    clock.after(wakeEveryMs, () => {
      isPaused = false;
      if (changed.size > 0) wake();
    });
  }

  const stopListening = store.onEvents((callerIds) => {
    if (listeners.size === 0) return;
    for (const callerId of callerIds) changed.add(callerId);
    if (!isPaused) wake();
  });

  return {
    /** Listens for events of a caller, or of all callers if undefined. Aborting the signal ends waiting. */
    listen: (callerId: number | undefined, signal: AbortSignal) => {
      let hasEvents = false;
      let waiting = new AbortController();
      const endWait = () => waiting.abort();
      const notify = () => {
        hasEvents = true;
        endWait();
      };
      const listener = { callerId, notify, endWait };
      signal.addEventListener('abort', endWait);
      listeners.add(listener);
      return {
        /**
         * Resolves when an event has become durable since the last call resolved, or since `listen`. Resolves after `ms`,
         * or when waiting ends, without one. May resolve without one at any time. One call at a time.
         */
        wait: async (ms: number): Promise<void> => {
          waiting = new AbortController();
          if (!hasEvents && !isEnded && !signal.aborted) await sleep(clock, ms, waiting.signal);
          hasEvents = false;
        },
        /** Ends listening. */
        [Symbol.dispose]: () => {
          signal.removeEventListener('abort', endWait);
          listeners.delete(listener);
        },
      };
    },
    /** Whether `end` was called. */
    isEnded: () => isEnded,
    /** Ends all waiting, now and later: the process stops. */
    end: (): void => {
      isEnded = true;
      stopListening();
      for (const { endWait } of listeners) endWait();
    },
  };
}

/** The most calls that wait for events at once: of all callers, and of one. */
export const pollsMax = { all: 1_000, ofCaller: 10 } as const;

/** Limits the calls that wait for events. */
export type Polls = ReturnType<typeof createPolls>;

export function createPolls() {
  /** Oldest first. */
  const waiting = new Map<AbortController, number>();

  function endOldest(among: Iterable<AbortController>): void {
    const [oldest] = among;
    if (oldest === undefined) return;
    waiting.delete(oldest);
    oldest.abort();
  }

  return {
    /**
     * Adds a call, until it is disposed of. Above a limit, the signal of the oldest call is aborted, of this caller or of all:
     * it has to respond with the events that there are.
     */
    begin: (callerId: number) => {
      const controller = new AbortController();
      waiting.set(controller, callerId);
      const own = [...waiting].flatMap(([each, owner]) => (owner === callerId ? [each] : []));
      if (own.length > pollsMax.ofCaller) endOldest(own);
      else if (waiting.size > pollsMax.all) endOldest(waiting.keys());
      return { signal: controller.signal, [Symbol.dispose]: () => waiting.delete(controller) };
    },
    /** How many calls wait. */
    waiting: () => waiting.size,
  };
}
