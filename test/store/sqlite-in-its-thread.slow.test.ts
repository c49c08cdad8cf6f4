import { sqliteInItsThread } from './engines.ts';
import { storeSuite } from './store-suite.ts';

// What concerns the way to the thread and back; what the engine does with a command is the same in any thread.
storeSuite('SQLite in its thread', sqliteInItsThread, ['known credentials', 'durability']);
