import type { Clock } from '../domain/clock.ts';
import type { Store } from '../store/store.ts';

/** The shortest time between two wakes of listeners, in milliseconds. Each listener reads the store when it is woken. */
export const wakeEveryMs = 50;

/** Wakes listeners when there may be events. */
export interface Feed {
  /** Listens for events of a caller, or of all callers if undefined. Aborting the signal ends waiting. */
  listen(callerId: number | undefined, signal: AbortSignal): Listener;
  /** Whether `end` was called. */
  isEnded(): boolean;
  /** Ends all waiting, now and later: the process stops. */
  end(): void;
}

/** Waits for events until it is disposed of. */
export interface Listener extends Disposable {
  /**
   * Resolves when an event has become durable since the last call resolved, or since `listen`. Resolves after `ms`, or when
   * waiting ends, without one. May resolve without one at any time. One call at a time.
   */
  wait(ms: number): Promise<void>;
}

interface ListenerState {
  readonly callerId: number | undefined;
  readonly signal: AbortSignal;
  hasEvents: boolean;
  /** Ends the current wait, if there is one. */
  wake: () => void;
}

export function createFeed(store: Pick<Store, 'onEvents'>, clock: Pick<Clock, 'after'>): Feed {
  const listeners = new Set<ListenerState>();
  /** Callers with events that no listener was woken for; undefined for all callers. */
  const changed = new Set<number | undefined>();
  let isPaused = false;
  let isEnded = false;

  function wake(): void {
    const isAll = changed.has(undefined);
    for (const listener of listeners) {
      if (listener.callerId !== undefined && !isAll && !changed.has(listener.callerId)) continue;
      listener.hasEvents = true;
      listener.wake();
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
    for (const callerId of callerIds ?? [undefined]) changed.add(callerId);
    if (!isPaused) wake();
  });

  async function wait(listener: ListenerState, ms: number): Promise<void> {
    if (!listener.hasEvents && !isEnded && !listener.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      listener.wake = resolve;
      const cancel = clock.after(ms, resolve);
      await promise;
      cancel();
    }
    listener.hasEvents = false;
  }

  return {
    listen: (callerId, signal) => {
      const listener: ListenerState = { callerId, signal, hasEvents: false, wake: () => {} };
      const end = () => listener.wake();
      signal.addEventListener('abort', end);
      listeners.add(listener);
      return {
        wait: (ms) => wait(listener, ms),
        [Symbol.dispose]: () => {
          signal.removeEventListener('abort', end);
          listeners.delete(listener);
        },
      };
    },
    isEnded: () => isEnded,
    end: () => {
      isEnded = true;
      stopListening();
      for (const { wake } of listeners) wake();
    },
  };
}
