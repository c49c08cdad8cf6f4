import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { unfinishedRestoreName } from './location.ts';

/**
 * What is wrong, in words for the operator, if a database is gone while files are there that are only ever made once it
 * was complete: to make one beside them, or to open an empty file there, would have SQLite drop the log of the lost one.
 * Undefined if all is well. `madeLater` are names of such files in its folder. Nothing is written, and the database is
 * not opened: closing it would drop the locks that this process has on it.
 */
export function findLost(database: string, madeLater: readonly string[]): string | undefined {
  const isThere = (name: string) => existsSync(join(dirname(database), name));
  const [log, memory] = [`${basename(database)}-wal`, `${basename(database)}-shm`];
  // Before the database is looked at, since another process may be making it: it is there before any of them.
  const later = madeLater.find(isThere);
  const ofSqlite = [log, memory].find(isThere);
  const bytes = statSync(database, { throwIfNoEntry: false })?.size;
  if (bytes === undefined) return lost(database, 'missing', ofSqlite ?? later);
  return bytes === 0 ? lost(database, 'empty', ofSqlite ?? later) : undefined;
}

function lost(database: string, how: string, proof: string | undefined): string | undefined {
  if (proof === unfinishedRestoreName)
    return `a restore into ${dirname(database)} did not end, so ${database} is ${how}: empty the folder, and run artseal restore again.`;
  return proof === undefined
    ? undefined
    : `${database} is ${how}, but ${proof} is there: it was moved or removed. Put it back; or use an empty folder.`;
}
