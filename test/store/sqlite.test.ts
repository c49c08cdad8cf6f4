import { sqliteInThisThread } from './engines.ts';
import { storeSuite } from './store-suite.ts';

storeSuite('SQLite', sqliteInThisThread);
