import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { makePrivateFile, privateMode, servingLockName } from './database.ts';
import { DatabaseRefused } from './location.ts';

/** Held by the process that takes calls; the operating system lets go of it when the process ends, however it ends. */
export interface ServingLock {
  release(): void;
}

/**
 * Takes the lock of a data folder that was served before; undefined of one that was not, for the lock is made only beside
 * a complete database. Throws DatabaseRefused if another process has it.
 */
export function takeOldServingLock(dataDir: string): ServingLock | undefined {
  return existsSync(join(dataDir, servingLockName)) ? takeServingLock(dataDir) : undefined;
}

/** Takes the lock of a data folder. Throws DatabaseRefused if another process has it. */
export function takeServingLock(dataDir: string): ServingLock {
  const file = join(dataDir, servingLockName);
  makePrivateFile(file);
  // Whoever can read it can lock it; earlier versions let everybody.
  chmodSync(file, privateMode);
  const lock = new Sqlite(file, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    const isHeld = error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY';
    throw isHeld
      ? new DatabaseRefused(`another artseal serves ${dataDir} already; stop it or use another folder.`)
      : error;
  }
  return { release: () => lock.close() };
}
