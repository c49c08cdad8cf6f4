import { join } from 'node:path';
import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { takeServingLock } from '../../src/store/sqlite/serving-lock.ts';
import { copyBefore, migrationNames } from '../../src/store/sqlite/upgrade.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, fileOne, sandbox } from './promises/fixtures.ts';

/** The schema of this version. */
export const newestSchema = migrationNames().length;
/** The schema of the version before it. */
export const earlierSchema = newestSchema - 1;

/** The platform that has filings in an earlier database. */
export const gallery = { callerId: 1, caller: 'gallery' };

/** Makes a database that an earlier version served, with a platform and two filings of it. */
export async function makeEarlierDatabase(t: TestContext) {
  original ??= createEarlierDatabase(temporaryFolder(t));
  const { from, filings } = await original;
  const dataDir = temporaryFolder(t);
  copyFolder(from, dataDir);
  const file = join(dataDir, 'artseal.db');
  return { dataDir, file, filings, copy: copyBefore(file, earlierSchema) };
}

/** The database that the others are copies of. */
let original: ReturnType<typeof createEarlierDatabase> | undefined;

async function createEarlierDatabase(from: string) {
  const store = createSqliteStore({ dataDir: from, ...sandbox });
  await addPlatform(store, gallery.caller);
  const filings = [await fileOne(store, gallery), await fileOne(store, gallery)];
  await store.close();
  takeServingLock(from).release();
  makeEarlier(join(from, 'artseal.db'));
  return { from, filings };
}

/** Gives a database that no process has open the schema of the version before this one, which had no triggers. */
export function makeEarlier(file: string): void {
  const raw = new Sqlite(file);
  const triggers = raw.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'trigger'").pluck();
  for (const name of triggers.all()) raw.exec(`DROP TRIGGER ${name}`);
  raw.pragma(`user_version = ${earlierSchema}`);
  raw.close();
}
