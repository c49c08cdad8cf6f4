import { createBatcher } from '../engine/batcher.ts';
import { createKnownState, derivedKey } from '../engine/known-state.ts';
import type { Store, StoreOptions } from '../store.ts';
import { type Core, openCore } from './core.ts';

/** The store on SQLite in this thread, which waits for the disk: for commands and tests. */
export function createSqliteStore(options: StoreOptions, core: Core = openCore(options)): Store {
  const { update, methods } = createKnownState();
  const report = () =>
    update({
      credentials: core.changedCredentials(),
      events: core.takeEventNews(),
      storageErrors: core.storageErrors(),
    });
  report();
  const { execute, inFlight, close } = createBatcher(async (units) => {
    const replies = await core.executeBatch(units);
    report();
    return replies;
  });
  return {
    execute,
    ...methods,
    keyFor: (purpose) => derivedKey(core.secret, purpose),
    checkedMs: core.checkedMs,
    upgrade: core.upgrade,
    findFault: core.findFault,
    requestsInFlight: inFlight,
    metrics: async () => ({ ...core.metrics(), requestsInFlight: inFlight() }),
    lost: Promise.withResolvers<never>().promise,
    close: async () => {
      await close();
      core.close();
    },
  };
}
