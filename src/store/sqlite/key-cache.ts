import type { Database as Connection } from 'better-sqlite3';
import type { StoredKey } from '../store.ts';

/**
 * All keys as last read, so that a call need not read its key while nobody changed any, and so that a known and an
 * unknown key take the same time. A registry has some ten thousand keys at most: a few megabytes, read in some tens
 * of milliseconds.
 */
export interface KeyCache {
  /** The key of that name, from memory, which `readAll` fills. */
  get(apiKey: string, readAll: () => readonly StoredKey[]): StoredKey | undefined;
  /** Forgets all: this process changed a key. */
  clear(): void;
}

/** A cache that notices every commit of another process, which SQLite counts in data_version. */
export function createKeyCache(connection: Connection): KeyCache {
  const dataVersion = connection.prepare('PRAGMA data_version').pluck();
  let keys: ReadonlyMap<string, StoredKey> | undefined;
  let seenVersion: unknown;
  return {
    get: (apiKey, readAll) => {
      // While this process holds the write lock nobody else can commit.
      if (!connection.inTransaction) {
        const version = dataVersion.get();
        if (version !== seenVersion) keys = undefined;
        seenVersion = version;
      }
      keys ??= new Map(readAll().map((key) => [key.apiKey, key]));
      return keys.get(apiKey);
    },
    clear: () => {
      keys = undefined;
    },
  };
}
