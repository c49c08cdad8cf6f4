import type { Store, StoreOptions } from '../store.ts';
import { createBatcher } from './batcher.ts';
import { type Core, openCore } from './core.ts';
import { createKnownState, derivedKey } from './known-state.ts';

/** How often the store checks for events of other processes. */
const checkEveryMs = 250;

/** The store on SQLite in this thread, which waits for the disk: for commands and tests. */
export function createSqliteStore(options: StoreOptions, core: Core = openCore(options)): Store {
  const { update, methods } = createKnownState();
  const refresh = () => update({ credentials: core.changedCredentials() });
  const check = (looks: boolean) =>
    update({ events: core.takeEventNews(looks), storageErrors: core.storageErrors() });
  const timer = setInterval(() => check(true), checkEveryMs).unref();
  const { execute, inFlight, close } = createBatcher(async (units) => {
    const replies = core.executeBatch(units);
    check(false);
    return replies;
  });
  return {
    execute,
    ...methods,
    findKey: (apiKey) => {
      refresh();
      return methods.findKey(apiKey);
    },
    findToken: (sha256) => {
      refresh();
      return methods.findToken(sha256);
    },
    refresh: async () => {
      refresh();
      check(true);
    },
    keyFor: (purpose) => derivedKey(core.secret, purpose),
    checkedMs: core.checkedMs,
    upgrade: core.upgrade,
    beginServing: async () => core.beginServing(),
    findFault: core.findFault,
    requestsInFlight: inFlight,
    metrics: async () => ({ ...core.metrics(), requestsInFlight: inFlight() }),
    lost: Promise.withResolvers<never>().promise,
    close: async () => {
      await close();
      clearInterval(timer);
      core.close();
    },
  };
}
