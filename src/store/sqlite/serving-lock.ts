import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { fileErrorText } from '../../lib/file-errors.ts';
import type { StoreOptions } from '../store.ts';
import { databaseBytes, makePrivateFile, privateMode } from './durable-files.ts';
import { isBusy } from './failure.ts';
import { DatabaseError, databaseFile, servingLockName } from './location.ts';

/** How long a process waits for the lock by default, in milliseconds. `isServed` holds it far shorter. */
const defaultTimeoutMs = 200;

/** The lock of the process that takes calls. The operating system releases it when the process ends, however it ends. */
export interface ServingLock {
  release(): void;
}

/** Takes the lock of a data folder. Throws FolderInUse if another process has it. */
export function takeServingLock(dataDir: string, timeoutMs?: number): ServingLock {
  const lock = tryServingLock(dataDir, timeoutMs);
  if (lock === undefined) throw servedAlready(dataDir);
  return lock;
}

/** Takes the lock if the options say so and there is a database. Throws FolderInUse. */
export function takeExisting({ dataDir, takeWithinMs }: StoreOptions): ServingLock | undefined {
  // The lock would prove that an empty database was lost.
  if (takeWithinMs === undefined || databaseBytes(databaseFile(dataDir)) === 0) return undefined;
  return takeServingLock(dataDir, takeWithinMs);
}

/** Throws DatabaseError if a process serves a data folder. */
export function rejectServed(dataDir: string): void {
  if (isServed(dataDir)) throw servedAlready(dataDir);
}

/** Another process has the lock. */
export class FolderInUse extends DatabaseError {
  override name = 'FolderInUse';
}

function servedAlready(dataDir: string): FolderInUse {
  return new FolderInUse(
    `another artseal serves ${dataDir} already, or a command works on it: stop it or use another folder.`,
  );
}

/** Takes the lock of a data folder; undefined if another process has it. */
export function tryServingLock(dataDir: string, timeoutMs = defaultTimeoutMs): ServingLock | undefined {
  const file = join(dataDir, servingLockName);
  try {
    return lockFile(file, timeoutMs);
  } catch (error) {
    if (isBusy(error)) return undefined;
    // Now: the thread of the store sends only the message of an error.
    const why = fileErrorText(error, file);
    throw why === undefined ? error : new DatabaseError(why);
  }
}

function lockFile(file: string, timeoutMs: number): ServingLock {
  makePrivateFile(file);
  // Every user who can read the file can lock it.
  chmodSync(file, privateMode);
  const lock = new Sqlite(file, { timeout: timeoutMs });
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (error) {
    lock.close();
    throw error;
  }
  return { release: () => lock.close() };
}

/** Whether a process serves a data folder. Does not take the lock. */
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
