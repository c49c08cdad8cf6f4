import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import type { StoreEngine } from './promises/fixtures.ts';

/** SQLite in the thread of the test. */
export const sqliteInThisThread: StoreEngine = { open: async (options) => createSqliteStore(options) };
