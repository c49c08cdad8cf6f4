import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { unfinishedRestoreName } from './location.ts';

/**
 * Checks that a database was not lost: that no files are there which are only created once it is complete. If one was created
 * beside them, or an empty file opened, SQLite would delete the log of the lost one. Returns what is wrong, for the operator, or
 * undefined. `madeLater` are the names of such files in its folder. Writes nothing, and does not open the database: closing it
 * would drop the locks that this process has on it.
 */
export function findLost(database: string, madeLater: readonly string[]): string | undefined {
  const isThere = (name: string) => existsSync(join(dirname(database), name));
  const [log, memory] = [`${basename(database)}-wal`, `${basename(database)}-shm`];
  // Before the database, because another process may be creating it, and creates them after it.
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
