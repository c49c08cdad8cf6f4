import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';
import { databaseFile } from '../../src/store/sqlite/location.ts';

/** Opens a connection to the database of a folder that has nothing to do with the store. */
export function openRaw(t: TestContext, dataDir: string, options?: Sqlite.Options): Sqlite.Database {
  const raw = new Sqlite(databaseFile(dataDir), options);
  t.after(() => raw.close());
  return raw;
}
