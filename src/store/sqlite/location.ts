import { join, resolve } from 'node:path';

/** The database cannot be used as this deployment asks; the message is for the operator. */
export class DatabaseRefused extends Error {
  override name = 'DatabaseRefused';
}

const fileName = 'artseal.db';

/** Where the database of a data folder is. */
export function databaseFile(dataDir: string): string {
  return join(resolve(dataDir), fileName);
}
