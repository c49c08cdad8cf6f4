import { sqliteOnLaterSchema } from './engines.ts';
import { storeSuite } from './store-suite.ts';

storeSuite('SQLite that a later version has upgraded', sqliteOnLaterSchema);
