import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { storeSuite } from './store-suite.ts';

storeSuite('SQLite', { open: async (options) => createSqliteStore(options) });
