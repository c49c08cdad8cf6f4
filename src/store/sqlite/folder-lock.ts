import { chmodSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { DatabaseError } from '../engine/failure.ts';
import { makePrivateFile, privateMode } from './durable-files.ts';
import { cannotUse, folderLockName } from './location.ts';
import { isBusy } from './sqlite-errors.ts';

/** How long a process waits for the lock by default, in milliseconds. `isInUse` holds it far shorter. */
const defaultTimeoutMs = 200;

/** The lock of the process that uses a data folder. The operating system releases it when the process ends, however it ends. */
export interface FolderLock {
  release(): void;
}

/** Another process uses the data folder. */
export class FolderInUse extends DatabaseError {
  override name = 'FolderInUse';
}

/** Takes the lock of a data folder. Throws FolderInUse if another process has it for so long, and DatabaseError. */
export function lockFolder(dataDir: string, timeoutMs = defaultTimeoutMs): FolderLock {
  const file = join(dataDir, folderLockName);
  try {
    return lockFile(file, timeoutMs);
  } catch (error) {
    if (isBusy(error))
      throw new FolderInUse(
        `another artseal uses ${dataDir}, a server or a command: wait until it ends or stop it, or use another folder.`,
      );
    // The error of an addon that cannot be loaded has no code, and says what to do.
    throw error instanceof Error && 'code' in error ? cannotUse(file, error) : error;
  }
}

function lockFile(file: string, timeoutMs: number): FolderLock {
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

/** Whether a process uses a data folder. Does not take the lock. */
export function isInUse(dataDir: string): boolean {
  const file = join(dataDir, folderLockName);
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
