import type { Store, StoreOptions } from '../store.ts';
import { createBatcher } from './batcher.ts';
import { type Core, openCore } from './core.ts';
import { createCredentialIndex } from './credential-index.ts';
import { derivedKey } from './derived-key.ts';

/** The store on SQLite in this thread, which waits for the disk: for commands, and for tests of the core. */
export function createSqliteStore(options: StoreOptions, core: Core = openCore(options)): Store {
  const index = createCredentialIndex();
  const refresh = () => {
    const changed = core.changedCredentials();
    if (changed !== undefined) index.replace(changed);
  };
  const { execute, inFlight, close } = createBatcher(async (units) => core.executeBatch(units));
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
    keyFor: (purpose) => derivedKey(core.secret, purpose),
    checkedMs: core.checkedMs,
    beginServing: async () => core.beginServing(),
    findFault: core.findFault,
    figures: async () => ({ ...core.figures(), unitsInFlight: inFlight() }),
    lost: Promise.withResolvers<never>().promise,
    close: async () => {
      await close();
      core.close();
    },
  };
}
