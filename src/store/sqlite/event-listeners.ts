import type { EventListener, Store } from '../store.ts';
import type { EventNews } from './thread-messages.ts';

/** Those who are told whose events there are. */
export interface EventListeners {
  readonly add: Store['onEvents'];
  tell(news: EventNews): void;
}

export function createEventListeners(): EventListeners {
  const listeners = new Set<EventListener>();
  return {
    add: (listener) => {
      // One that is added twice is ended twice.
      const own: EventListener = (callerIds) => listener(callerIds);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    tell: (news) => {
      if (news === undefined) return;
      for (const listener of listeners) listener(news === 'ANYBODY' ? undefined : news);
    },
  };
}
