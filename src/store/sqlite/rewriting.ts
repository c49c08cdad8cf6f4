import Sqlite from 'better-sqlite3';
import { busyTimeoutMs } from './database.ts';
import { databaseFile } from './location.ts';
import { tryServingLock } from './serving-lock.ts';

/**
 * Gets what was erased out of the files of a database:
 * - REWRITTEN: nobody served it; it was written anew, and its log is empty.
 * - FOLDED: a process serves it; its log was written into it and is empty.
 * - HELD: another process was at it, so that the log has what it had.
 */
export type Rewriting = 'REWRITTEN' | 'FOLDED' | 'HELD';

/**
 * Rewrites the database of a data folder, if nobody serves it. SQLite copies rows within the file as pages fill, and what
 * was a row once may be in a part that is not in use. Takes as much room again beside it.
 */
export function rewriteDatabase(dataDir: string): Rewriting {
  const lock = tryServingLock(dataDir);
  try {
    if (!writeAnew(dataDir, lock !== undefined)) return 'HELD';
    return lock === undefined ? 'FOLDED' : 'REWRITTEN';
  } finally {
    lock?.release();
  }
}

/** Writes the log of a database into it, the rest of it anew if that `isWhole`; false where another process was at it. */
function writeAnew(dataDir: string, isWhole: boolean): boolean {
  const client = new Sqlite(databaseFile(dataDir), { fileMustExist: true, timeout: busyTimeoutMs });
  try {
    if (isWhole) client.exec('VACUUM');
    const [fold] = client.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
    return fold?.busy === 0;
  } finally {
    client.close();
  }
}
