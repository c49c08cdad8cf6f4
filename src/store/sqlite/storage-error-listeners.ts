import type { StorageErrors, Store } from '../store.ts';
import { noStorageErrors } from './incidents.ts';

/** The storage errors of a store as its callers know them, and those who are called back when there are more. */
export interface StorageErrorListeners {
  readonly add: Store['onStorageError'];
  readonly latest: Store['storageErrors'];
  /** Takes the errors that are known now; the same object, or none, changes nothing. */
  update(errors: StorageErrors | undefined): void;
}

export function createStorageErrorListeners(): StorageErrorListeners {
  const listeners = new Set<() => void>();
  let latest = noStorageErrors;
  return {
    add: (listener) => {
      // One that is added twice is ended twice.
      const own = () => listener();
      listeners.add(own);
      return () => listeners.delete(own);
    },
    latest: () => latest,
    update: (errors) => {
      if (errors === undefined || errors === latest) return;
      latest = errors;
      for (const listener of listeners) listener();
    },
  };
}
