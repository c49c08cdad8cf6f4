import type { EventListener, Store } from '../store.ts';
import type { EventNews } from './thread-messages.ts';

/** The functions to call when events are durable. */
export interface EventListeners {
  readonly add: Store['onEvents'];
  notify(news: EventNews): void;
}

export function createEventListeners(): EventListeners {
  const listeners = new Set<EventListener>();
  return {
    add: (listener) => {
      // A listener that is added twice is also removed twice.
      const own: EventListener = (callerIds) => listener(callerIds);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    notify: (news) => {
      if (news === undefined) return;
      for (const listener of listeners) listener(news === 'ANYBODY' ? undefined : news);
    },
  };
}
