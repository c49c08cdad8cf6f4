import type { Store, StoreOptions } from '../store.ts';
import { createBatcher } from './batcher.ts';
import { type Core, openCore } from './core.ts';
import { createCredentialIndex } from './credential-index.ts';
import { derivedKey } from './derived-key.ts';
import { createEventListeners } from './event-listeners.ts';
import { createStorageErrorListeners } from './storage-error-listeners.ts';

/** How often it is looked whether another process wrote events. */
const lookEveryMs = 250;

/** The store on SQLite in this thread, which waits for the disk: for commands, and for tests of the core. */
export function createSqliteStore(options: StoreOptions, core: Core = openCore(options)): Store {
  const index = createCredentialIndex();
  const refresh = () => {
    const changed = core.changedCredentials();
    if (changed !== undefined) index.replace(changed);
  };
  const listeners = createEventListeners();
  const storageErrors = createStorageErrorListeners();
  const look = setInterval(() => {
    listeners.notify(core.takeEventNews(true));
    storageErrors.update(core.storageErrors());
  }, lookEveryMs).unref();
  const { execute, inFlight, close } = createBatcher(async (units) => {
    const replies = core.executeBatch(units);
    listeners.notify(core.takeEventNews(false));
    storageErrors.update(core.storageErrors());
    return replies;
  });
  return {
    execute,
    findKey: (apiKey) => {
      refresh();
      return index.findKey(apiKey);
    },
    findToken: (sha256) => {
      refresh();
      return index.findToken(sha256);
    },
    refresh: async () => {
      refresh();
      listeners.notify(core.takeEventNews(true));
    },
    keyFor: (purpose) => derivedKey(core.secret, purpose),
    checkedMs: core.checkedMs,
    upgrade: core.upgrade,
    beginServing: async () => core.beginServing(),
    findFault: core.findFault,
    storageErrors: storageErrors.latest,
    onStorageError: storageErrors.add,
    onEvents: listeners.add,
    requestsInFlight: inFlight,
    metrics: async () => ({ ...core.metrics(), requestsInFlight: inFlight() }),
    lost: Promise.withResolvers<never>().promise,
    close: async () => {
      await close();
      clearInterval(look);
      core.close();
    },
  };
}
