import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { openThreadedStore } from '../../src/store/sqlite/threaded-store.ts';
import type { StoreOptions } from '../../src/store/store.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { upgradeFurther } from './further-migration.ts';
import { type StoreEngine, sandbox } from './promises/fixtures.ts';

/** SQLite in the thread of the test. A new database is a copy of one that the engine created, unless it has to be `NEW`. */
export const sqliteInThisThread: StoreEngine = {
  open: async (options) => {
    await copyPrototype(options);
    return createSqliteStore(options);
  },
};

/** The same on databases that a later version has upgraded. */
export const sqliteOnLaterSchema: StoreEngine = {
  open: async (options) => {
    if (await copyPrototype(options)) upgradeFurther(options.dataDir);
    return createSqliteStore(options);
  },
};

/** SQLite in a thread of its own, which takes long to start. */
export const sqliteInItsThread: StoreEngine = { open: openThreadedStore };

/** The data folder that new databases are copies of. */
let prototype: Promise<string> | undefined;

/** Copies the prototype into a folder for which it fits. Returns whether it does. */
async function copyPrototype(options: StoreOptions): Promise<boolean> {
  if (!isCopied(options)) return false;
  prototype ??= createPrototype();
  copyFolder(await prototype, options.dataDir);
  return true;
}

const isCopied = ({ dataDir, opening, environment, currency }: StoreOptions): boolean =>
  opening === sandbox.opening &&
  environment === sandbox.environment &&
  currency === sandbox.currency &&
  existsSync(dataDir) &&
  readdirSync(dataDir).length === 0;

async function createPrototype(): Promise<string> {
  const dataDir = mkdtempSync(join(tmpdir(), 'artseal-test-'));
  process.once('exit', () => rmSync(dataDir, { recursive: true, force: true }));
  await createSqliteStore({ dataDir, ...sandbox }).close();
  return dataDir;
}
