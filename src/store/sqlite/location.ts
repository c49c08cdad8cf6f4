import { join, resolve } from 'node:path';
import { fileErrorText } from '../../lib/file-errors.ts';

/** The database cannot be used by this deployment. The message is for the operator. */
export class DatabaseError extends Error {
  override name = 'DatabaseError';
}

/** The error of a database file that cannot be opened. */
export function cannotUse(file: string, error: Error): DatabaseError {
  const rule =
    'ARTSEAL_DATA_DIR must name a folder that this user can write, with the database of Artseal or none';
  const why = fileErrorText(error, file) ?? error.message;
  return new DatabaseError(`${file} cannot be used: ${why}; ${rule}.`);
}

/** The database in its folder. */
export const databaseName = 'artseal.db';
/** The file that the serving process locks. */
export const servingLockName = 'serving.lock';

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

/** A data folder with the files of its database and of the serving lock, whether they exist or not. */
export function databaseFiles(dataDir: string): string[] {
  const files = [databaseFile(dataDir), join(resolve(dataDir), servingLockName)];
  return [dataDir, ...files.flatMap(withSqliteFiles)];
}
