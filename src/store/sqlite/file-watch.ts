import { type BigIntStats, statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { StoreFiles } from '../store.ts';
import { freeBytes } from './durable-files.ts';

/** The database, its write-ahead log, and the memory that processes share. Together they are its content. */
const suffixes = ['', '-wal', '-shm'];

/** As `watchFiles` makes it. */
export type FileWatch = ReturnType<typeof watchFiles>;

/** Whether the files of an open database are still those at its path. */
export function watchFiles(database: string) {
  const files = suffixes.map((suffix) => {
    const path = `${database}${suffix}`;
    return { path, opened: statOf(path) };
  });
  const look = (): string | undefined => {
    for (const { path, opened } of files) {
      const now = statOf(path);
      if (now?.ino === opened?.ino && now?.dev === opened?.dev) continue;
      return `${path} is ${now === undefined ? 'gone' : 'not the file that was opened'}`;
    }
    return undefined;
  };
  let found: string | undefined;
  return {
    /** Checks again. Returns what is wrong, for the operator, or undefined. */
    look: (): string | undefined => {
      found = look();
      return found;
    },
    /** The result of the last check. */
    found: (): string | undefined => found,
  };
}

/** Undefined if there is no such file, or if it cannot be reached. */
function statOf(path: string): BigIntStats | undefined {
  try {
    return statSync(path, { bigint: true, throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}

/** Measures the files of a database, and the free space on their disk. */
export function readFileMetrics(database: string): StoreFiles {
  return {
    databaseBytes: known(() => statSync(database).size),
    logBytes: known(() => statSync(`${database}-wal`).size),
    freeBytes: known(() => freeBytes(dirname(database))),
  };
}

/** Undefined for a file that was moved away, which `findFault` reports. */
function known(measure: () => number): number | undefined {
  try {
    return measure();
  } catch {
    return undefined;
  }
}
