import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorText } from '../lib/file-errors.ts';
import { DatabaseError } from '../store/engine/failure.ts';
import { createFolder } from '../store/sqlite/durable-files.ts';
import { lockFolder } from '../store/sqlite/folder-lock.ts';
import { databaseFile } from '../store/sqlite/location.ts';
import { readMoveRecord } from '../store/sqlite/move-record.ts';
import type { PostgresPlace, Store, StoreOptions } from '../store/store.ts';

// A deployment on PostgreSQL keeps its other files in the data folder: the published checkpoint, the admin
// socket, and in a sandbox its credentials and its master key. As on SQLite, one process at a time uses the
// folder.

/**
 * Opens the store on PostgreSQL, and locks the data folder until it is closed. It creates the folder if it
 * may make the tables. Throws FolderInUse and DatabaseError.
 */
export async function openInFolder(place: PostgresPlace, options: StoreOptions): Promise<Store> {
  const { dataDir, opening, environment, currency, lockTimeoutMs } = options;
  if (opening !== 'EXISTING') createDataFolder(resolve(dataDir));
  const lock = lockExisting(dataDir, lockTimeoutMs);
  try {
    const file = databaseFile(dataDir);
    if (existsSync(file))
      throw new DatabaseError(
        `ARTSEAL_DATABASE_URL is set, and ${file} is there: run artseal move to move it to PostgreSQL, or unset ` +
          'ARTSEAL_DATABASE_URL to use it.',
      );
    if (readMoveRecord(dataDir) !== undefined) {
      const { settleStamp } = await import('../store/move/move.ts');
      await settleStamp(dataDir, place);
    }
    await refuseLost(place, options);
    const { openPostgresStore } = await import('../store/postgres/store.ts');
    const store = await openPostgresStore({ place, environment, currency, opening });
    return {
      ...store,
      close: async () => {
        await store.close();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Runs work while no other process uses the data folder. Throws FolderInUse and DatabaseError. */
export async function inFolder<T>(dataDir: string, work: () => Promise<T>): Promise<T> {
  const lock = lockExisting(dataDir);
  try {
    return await work();
  } finally {
    lock.release();
  }
}

function createDataFolder(folder: string): void {
  try {
    createFolder(folder);
  } catch (error) {
    throw new DatabaseError(
      `${folder} cannot be used: ${errorText(error)}; ARTSEAL_DATA_DIR must name a folder that this user can write.`,
    );
  }
}

function lockExisting(dataDir: string, timeoutMs?: number) {
  if (!existsSync(dataDir))
    throw new DatabaseError(
      `there is no folder ${resolve(dataDir)}: set ARTSEAL_DATA_DIR to the folder of this deployment, ` +
        'or run artseal init.',
    );
  return lockFolder(resolve(dataDir), timeoutMs);
}

/** Throws DatabaseError if the database is empty and the folder belongs to another one. */
async function refuseLost(
  place: PostgresPlace,
  { dataDir, opening, madeLater = [] }: StoreOptions,
): Promise<void> {
  if (opening === 'EXISTING') return;
  const proof = madeLater.find((name) => existsSync(join(dataDir, name)));
  if (proof === undefined) return;
  const { isEmpty } = await import('../store/postgres/inspection.ts');
  if (await isEmpty(place))
    throw new DatabaseError(
      `the database of ARTSEAL_DATABASE_URL has no tables, but ${proof} is in ${resolve(dataDir)}, which ` +
        'belongs to another database: name that one, or use an empty folder.',
    );
}
