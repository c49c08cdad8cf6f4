import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { openThreadedStore } from '../../src/store/sqlite/threaded-store.ts';
import type { StoreEngine } from './promises/fixtures.ts';

/** SQLite in the thread of the test. */
export const sqliteInThisThread: StoreEngine = { open: async (options) => createSqliteStore(options) };

/** SQLite in a thread of its own, which takes long to start. */
export const sqliteInItsThread: StoreEngine = { open: openThreadedStore };
