import type { Database as Connection } from 'better-sqlite3';
import type { StoredKey } from '../store.ts';

/** Keys as last read, so that a call need not read its key again while nobody changed any. */
export interface KeyCache {
  /** The key of that name, from memory or from `read`. Unknown names are not remembered. */
  get(apiKey: string, read: () => StoredKey | undefined): StoredKey | undefined;
  /** Forgets all: this process changed a key. */
  clear(): void;
}

/** A cache that notices every commit of another process, which SQLite counts in data_version. */
export function createKeyCache(connection: Connection): KeyCache {
  const dataVersion = connection.prepare('PRAGMA data_version').pluck();
  const keys = new Map<string, StoredKey>();
  let seenVersion: unknown;
  return {
    get: (apiKey, read) => {
      // While this process holds the write lock nobody else can commit.
      if (!connection.inTransaction) {
        const version = dataVersion.get();
        if (version !== seenVersion) keys.clear();
        seenVersion = version;
      }
      const known = keys.get(apiKey);
      if (known !== undefined) return known;
      const key = read();
      if (key !== undefined) keys.set(apiKey, key);
      return key;
    },
    clear: () => keys.clear(),
  };
}
