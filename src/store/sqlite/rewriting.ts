import Sqlite from 'better-sqlite3';
import { busyTimeoutMs } from './database.ts';
import { databaseFile } from './location.ts';
import { tryServingLock } from './serving-lock.ts';

/**
 * How erased texts were removed from the files of a database:
 * - REWRITTEN: no process served it, so it was rewritten, and its log is empty.
 * - FOLDED: a process serves it, so only its log was written into it and is empty.
 * - HELD: another process used it, so its log is unchanged.
 */
type Rewriting = 'REWRITTEN' | 'FOLDED' | 'HELD';

/**
 * Rewrites the database of a data folder if no process serves it. SQLite copies rows within the file as pages fill, so an unused
 * part may hold a former row. Needs free space of the database's size.
 */
export function rewriteDatabase(dataDir: string): Rewriting {
  const lock = tryServingLock(dataDir);
  try {
    if (!rewrite(dataDir, lock !== undefined)) return 'HELD';
    return lock === undefined ? 'FOLDED' : 'REWRITTEN';
  } finally {
    lock?.release();
  }
}

/** Rewrites a database if `isWhole`, and writes its log into it. False if another process used it. */
function rewrite(dataDir: string, isWhole: boolean): boolean {
  const client = new Sqlite(databaseFile(dataDir), { fileMustExist: true, timeout: busyTimeoutMs });
  try {
    if (isWhole) client.exec('VACUUM');
    const [fold] = client.pragma('wal_checkpoint(TRUNCATE)') as { readonly busy: number }[];
    return fold?.busy === 0;
  } finally {
    client.close();
  }
}
