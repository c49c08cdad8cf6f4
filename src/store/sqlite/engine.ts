import type { Store, StoreOptions } from '../store.ts';
import { createAdmissionStore } from './admission.ts';
import { createCallerStore } from './callers.ts';
import { type Database, databaseFile, openDatabase } from './database.ts';
import { deploymentSecret, derivedKey } from './deployment-secret.ts';
import { createEscrowStore } from './escrows.ts';
import { watchFiles } from './file-watch.ts';
import { createFilingStore } from './filings.ts';
import { createGroupCommit } from './group-commit.ts';
import { createIdempotencyStore } from './idempotency.ts';
import { createKeyCache } from './key-cache.ts';
import { type ServingLock, takeOldServingLock, takeServingLock } from './serving-lock.ts';

/** The store on SQLite: WAL with `synchronous=FULL`, one connection, writes of a turn in one commit. */
export function createSqliteStore(options: StoreOptions): Store {
  const isAlone = options.serving === true || options.opening === 'NEW';
  let lock = isAlone ? takeOldServingLock(options.dataDir) : undefined;
  const database = openBehind(lock, options);
  const files = watchFiles(databaseFile(options.dataDir));
  const commits = createGroupCommit(database.$client, files);
  const keys = createKeyCache(database.$client);
  const secret = deploymentSecret(database);
  return {
    admission: createAdmissionStore(database, commits, keys),
    callers: createCallerStore(database, commits, keys),
    filings: createFilingStore(database, commits),
    escrows: createEscrowStore(database, commits),
    idempotency: createIdempotencyStore(database, commits),
    keyFor: (purpose) => derivedKey(secret, purpose),
    beginServing: async () => {
      lock ??= takeServingLock(options.dataDir);
    },
    findFault: () => files.look(),
    durable: () => commits.durable(),
    close: async () => {
      try {
        await commits.durable();
      } finally {
        database.$client.close();
        lock?.release();
      }
    },
  };
}

/** Opens the database; lets go of the lock if that fails. */
function openBehind(lock: ServingLock | undefined, options: StoreOptions): Database {
  try {
    return openDatabase(options);
  } catch (error) {
    lock?.release();
    throw error;
  }
}
