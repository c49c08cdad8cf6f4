import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import type { StoreFiles } from '../store.ts';
import { freeBytes } from './durable-files.ts';

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
