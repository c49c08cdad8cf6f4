import type { Clock } from '../domain/clock.ts';
import type { Store } from '../store/store.ts';

/**
 * How often those who wait are woken at most, in milliseconds. Each of them reads when it is woken, and reading for every filing
 * would slow filings down.
 */
export const wakeEveryMs = 50;

/** Tells those who wait that there may be events. */
export interface Feed {
  /** Listens for events of a caller, or of anybody where it is undefined; waiting ends when the signal is aborted. */
  listen(callerId: number | undefined, signal: AbortSignal): Listener;
  /** Whether waiting has ended for good. */
  isEnded(): boolean;
  /** Ends all waiting, and has none wait from then on: the process stops. */
  end(): void;
}

/** One that waits, again and again, until it is disposed of. */
export interface Listener extends Disposable {
  /**
   * Resolves when events became durable since it began to listen or, where it was resolved before, since then; else behind `ms`
   * or when waiting has ended. It may resolve though there are none. To be called when the one before has resolved.
   */
  news(ms: number): Promise<void>;
}

/** What is known of a listener. */
interface Waiting {
  readonly callerId: number | undefined;
  readonly signal: AbortSignal;
  isNews: boolean;
  /** Ends its waiting; nothing where it does not wait. */
  wake: () => void;
}

/** The feed of a store. */
export function createFeed(store: Pick<Store, 'onEvents'>, clock: Pick<Clock, 'after'>): Feed {
  const listeners = new Set<Waiting>();
  /** Whose events there are that nobody was woken for; undefined for anybody's. */
  const told = new Set<number | undefined>();
  let isResting = false;
  let isEnded = false;

  function wake(): void {
    const isAnybodys = told.has(undefined);
    for (const listener of listeners) {
      if (listener.callerId !== undefined && !isAnybodys && !told.has(listener.callerId)) continue;
      listener.isNews = true;
      listener.wake();
    }
    told.clear();
    isResting = true;
    clock.after(wakeEveryMs, () => {
      isResting = false;
      if (told.size > 0) wake();
    });
  }

  const stopListening = store.onEvents((callerIds) => {
    if (listeners.size === 0) return;
    for (const callerId of callerIds ?? [undefined]) told.add(callerId);
    if (!isResting) wake();
  });

  async function news(listener: Waiting, ms: number): Promise<void> {
    if (!listener.isNews && !isEnded && !listener.signal.aborted) {
      const { promise, resolve } = Promise.withResolvers<void>();
      listener.wake = resolve;
      const giveUp = clock.after(ms, resolve);
      await promise;
      giveUp();
    }
    listener.isNews = false;
  }

  return {
    listen: (callerId, signal) => {
      const listener: Waiting = { callerId, signal, isNews: false, wake: () => {} };
      const end = () => listener.wake();
      signal.addEventListener('abort', end);
      listeners.add(listener);
      return {
        news: (ms) => news(listener, ms),
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
