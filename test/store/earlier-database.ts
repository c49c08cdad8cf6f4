import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { takeBack } from '../../src/store/sqlite/downgrade.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { migrationNames } from '../../src/store/sqlite/migrations.ts';
import { takeServingLock } from '../../src/store/sqlite/serving-lock.ts';
import { copyBefore } from '../../src/store/sqlite/upgrade.ts';
import type { Store } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, fileOne, sandbox } from './promises/fixtures.ts';

/** The schema of this version. */
export const newestSchema = migrationNames().length;
/** The schema of the version before it. */
export const earlierSchema = newestSchema - 1;

/** The platform that has filings in an earlier database. */
export const gallery = { callerId: 1, caller: 'gallery' };

/** Makes a database that an earlier version served: with a platform, two filings of it, and what `fill` adds. */
export async function makeEarlierDatabase(
  t: TestContext,
  fill: (store: Store) => Promise<unknown> = async () => {},
) {
  const dataDir = temporaryFolder(t);
  const file = join(dataDir, 'artseal.db');
  const store = createSqliteStore({ dataDir, ...sandbox });
  await addPlatform(store, gallery.caller);
  const filings = [await fileOne(store, gallery), await fileOne(store, gallery)];
  await fill(store);
  await store.close();
  takeServingLock(dataDir).release();
  takeBack(file, earlierSchema);
  return { dataDir, file, filings, copy: copyBefore(file, earlierSchema) };
}
