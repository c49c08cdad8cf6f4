import type Sqlite from 'better-sqlite3';
import type { BetterSQLite3Database } from 'drizzle-orm/better-sqlite3';

/** The one connection of this process: Drizzle over it, and the connection itself as `$client`. */
export type Database = BetterSQLite3Database & { $client: Sqlite.Database };
