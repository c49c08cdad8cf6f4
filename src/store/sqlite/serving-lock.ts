import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { makePrivateFile, privateMode } from './durable-files.ts';
import { isBusy } from './failure.ts';
import { DatabaseError, servingLockName } from './location.ts';

/** How long a lock is waited for, in milliseconds: those who only look whether it is held are done far sooner. */
const lookedAtMs = 200;

/** Held by the process that takes calls; the operating system lets go of it when the process ends, however it ends. */
export interface ServingLock {
  release(): void;
}

/**
 * Takes the lock of a data folder that was served before; undefined of one that was not, for the lock is made only beside
 * a complete database. Throws DatabaseError if another process has it.
 */
export function takeOldServingLock(dataDir: string): ServingLock | undefined {
  return existsSync(join(dataDir, servingLockName)) ? takeServingLock(dataDir) : undefined;
}

/** Takes the lock of a data folder. Throws DatabaseError if another process has it. */
export function takeServingLock(dataDir: string): ServingLock {
  const lock = tryServingLock(dataDir);
  if (lock !== undefined) return lock;
  throw new DatabaseError(`another artseal serves ${dataDir} already; stop it or use another folder.`);
}

/** Takes the lock of a data folder; undefined if another process has it. */
export function tryServingLock(dataDir: string): ServingLock | undefined {
  const file = join(dataDir, servingLockName);
  makePrivateFile(file);
  // Whoever can read it can lock it; earlier versions let everybody.
  chmodSync(file, privateMode);
  const lock = new Sqlite(file, { timeout: lookedAtMs });
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    if (isBusy(error)) return undefined;
    throw error;
  }
  return { release: () => lock.close() };
}

/** Whether a process takes calls on a data folder. It is looked at without locking anybody out. */
export function isServed(dataDir: string): boolean {
  const file = join(dataDir, servingLockName);
  if (!existsSync(file)) return false;
  const lock = new Sqlite(file, { readonly: true, timeout: 0 });
  try {
    lock.prepare('SELECT 1 FROM sqlite_schema').get();
    return false;
  } catch (error) {
    if (isBusy(error)) return true;
    throw error;
  } finally {
    lock.close();
  }
}
