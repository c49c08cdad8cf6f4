import { existsSync } from 'node:fs';
import Sqlite from 'better-sqlite3';

/** How long a connection waits for the lock of another one, in milliseconds. Only tools of SQLite hold it long. */
export const busyTimeoutMs = 250;

/** Opens an existing database, which another process may use, to read it. Leaves no new file beside it. */
export function openToRead(file: string): Sqlite.Database {
  // A connection that only reads leaves a log if there was none. One that may write checkpoints an existing log when it closes,
  // and the next start would not check the database.
  const readonly = existsSync(`${file}-wal`);
  const client = new Sqlite(file, { readonly, fileMustExist: true, timeout: busyTimeoutMs });
  try {
    client.pragma('query_only = ON');
    client.pragma('trusted_schema = OFF');
    return client;
  } catch (error) {
    client.close();
    throw error;
  }
}

/** Opens such a database, reads it with `work` and closes it. */
export function readDatabase<T>(file: string, work: (client: Sqlite.Database) => T): T {
  const client = openToRead(file);
  try {
    return work(client);
  } finally {
    client.close();
  }
}
