import { join, resolve } from 'node:path';

/** The database cannot be used as this deployment asks; the message is for the operator. */
export class DatabaseRefused extends Error {
  override name = 'DatabaseRefused';
}

/** The database in its folder. */
export const databaseName = 'artseal.db';
/** The file that the serving process locks. */
export const servingLockName = 'serving.lock';

/** The folder in a data folder where a backup is unpacked; it is there until the database is in its place. */
export const unfinishedRestoreName = 'restore.partial';

/** Where the database of a data folder is. */
export function databaseFile(dataDir: string): string {
  return join(resolve(dataDir), databaseName);
}
