import { createCoreStore } from '../engine/core-store.ts';
import type { Store, StoreOptions } from '../store.ts';
import { type Core, openCore } from './core.ts';

/** The store on SQLite in this thread, which waits for the disk: for commands and tests. */
export function createSqliteStore(options: StoreOptions, core: Core = openCore(options)): Store {
  const { checkedMs, upgrade, findFault } = core;
  const { promise: lost } = Promise.withResolvers<never>();
  return createCoreStore(core, { checkedMs, upgrade, findFault, lost }, core.close);
}
