import type { EventListener, StorageErrors, Store } from '../store.ts';
import { noStorageErrors } from './failure.ts';
import type { EventNews } from './thread-messages.ts';

/** The listeners of a store, and its storage errors as its callers know them. */
export interface StoreListeners extends Pick<Store, 'onEvents' | 'onStorageError' | 'storageErrors'> {
  /** Notifies the listeners of what is new. Undefined, or the same errors, is nothing new. */
  update(news: { readonly events: EventNews; readonly storageErrors: StorageErrors | undefined }): void;
}

export function createStoreListeners(): StoreListeners {
  const ofEvents = createListeners<Parameters<EventListener>>();
  const ofErrors = createListeners<[]>();
  let errors = noStorageErrors;
  return {
    onEvents: ofEvents.add,
    onStorageError: ofErrors.add,
    storageErrors: () => errors,
    update: ({ events, storageErrors = errors }) => {
      if (events !== undefined) ofEvents.notify(events === 'ANYBODY' ? undefined : events);
      if (storageErrors === errors) return;
      errors = storageErrors;
      ofErrors.notify();
    },
  };
}

function createListeners<Args extends readonly unknown[]>() {
  const listeners = new Set<(...args: Args) => void>();
  return {
    add: (listener: (...args: Args) => void) => {
      // A listener that is added twice is also removed twice.
      const own = (...args: Args) => listener(...args);
      listeners.add(own);
      return () => listeners.delete(own);
    },
    notify: (...args: Args) => {
      for (const listener of listeners) listener(...args);
    },
  };
}
