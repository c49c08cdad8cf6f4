import { existsSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileErrorText } from '../../lib/file-errors.ts';
import { DatabaseError } from '../engine/failure.ts';
import { readMoveRecord } from './move-record.ts';

/** The error of a database file that cannot be opened. */
export function cannotUse(file: string, error: Error): DatabaseError {
  const rule =
    'ARTSEAL_DATA_DIR must name a folder that this user can write, with the database of Artseal or none';
  const why = fileErrorText(error, file) ?? error.message;
  if ('code' in error && error.code === 'SQLITE_FULL') return new DatabaseError(why);
  return new DatabaseError(`${file} cannot be used: ${why}; ${rule}.`);
}

/** The database in its folder. */
export const databaseName = 'artseal.db';
/** The file that the process locks which uses the folder. */
export const folderLockName = 'artseal.lock';

/** The folder in a data folder where a backup is unpacked. It is removed once the database is in its place. */
export const unfinishedRestoreName = 'restore.partial';

/** The path of the database in a data folder. */
export function databaseFile(dataDir: string): string {
  return join(resolve(dataDir), databaseName);
}

/** A file of SQLite and the files that SQLite keeps beside it, whether they exist or not. */
export function withSqliteFiles(file: string): string[] {
  return ['', '-journal', '-wal', '-shm'].map((suffix) => `${file}${suffix}`);
}

/** A data folder with the files of its database and of its lock, whether they exist or not. */
export function databaseFiles(dataDir: string): string[] {
  const files = [databaseFile(dataDir), join(resolve(dataDir), folderLockName)];
  return [dataDir, ...files.flatMap(withSqliteFiles)];
}

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
  const moved = bytes === undefined ? readMoveRecord(dirname(database)) : undefined;
  if (moved !== undefined)
    return `the database of ${dirname(database)} was moved to ${moved.url}: set ARTSEAL_DATABASE_URL to that.`;
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
