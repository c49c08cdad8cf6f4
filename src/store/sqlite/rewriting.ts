import Sqlite from 'better-sqlite3';
import { isInUse, lockFolder } from './folder-lock.ts';
import { databaseFile } from './location.ts';
import { busyTimeoutMs } from './reading.ts';

/**
 * Whether erased texts were removed from the files of a database:
 * - REWRITTEN: it was rewritten, and its log is empty.
 * - SERVED: a process uses it, so it is as it was.
 * - READ: it was rewritten, but its log has the former content, because another process reads that.
 */
type Rewriting = 'REWRITTEN' | 'SERVED' | 'READ';

/**
 * Rewrites the database of a data folder if no process uses it. SQLite copies rows within the file as pages fill, so an unused
 * part may hold a former row. Needs free space of the database's size.
 */
export function rewriteDatabase(dataDir: string): Rewriting {
  if (isInUse(dataDir)) return 'SERVED';
  const lock = lockFolder(dataDir);
  try {
    return rewrite(dataDir) ? 'REWRITTEN' : 'READ';
  } finally {
    lock.release();
  }
}

/** Rewrites a database, and writes its log into it. False if another process reads it. */
function rewrite(dataDir: string): boolean {
  const client = new Sqlite(databaseFile(dataDir), { fileMustExist: true, timeout: busyTimeoutMs });
  try {
    client.exec('VACUUM');
    const [fold] = client.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
    return fold?.busy === 0;
  } finally {
    client.close();
  }
}
