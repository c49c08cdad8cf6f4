import { join } from 'node:path';
import type { TestContext } from 'node:test';
import Sqlite from 'better-sqlite3';
import { is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import type { Migration } from '../../src/store/engine/migrations.ts';
import * as schema from '../../src/store/engine/schema.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { copyBefore, migrations } from '../../src/store/sqlite/upgrade.ts';
import { copyFolder } from '../support/copy-folder.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, fileOne, sandbox } from './promises/fixtures.ts';

/** The schema of this version. */
export const presentSchema = migrations.length;
/** The schema after the further migration. */
export const furtherSchema = presentSchema + 1;

const tables = Object.values(schema).filter((value) => is(value, SQLiteTable));

/** A migration that a later version could have. It expands each table. */
export const further: Migration = {
  name: `${String(presentSchema).padStart(4, '0')}_further`,
  sql: tables.map((table) => `ALTER TABLE ${getTableConfig(table).name} ADD further text;`).join('\n'),
};

/** The same for PostgreSQL. */
export const furtherOnPostgres: Migration = {
  name: further.name,
  sql: `DO $$ DECLARE name text; BEGIN
    FOR name IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' LOOP
      EXECUTE format('ALTER TABLE %I ADD further text', name);
    END LOOP;
  END $$`,
};

/** Gives the code the further migration until the test ends. */
export function addFurtherMigration(t: Pick<TestContext, 'after'>): void {
  migrations.push(further);
  t.after(() => migrations.pop());
}

/** Upgrades a database that no process has open, as a later version would. `sql` runs after the further migration. */
export function upgradeFurther(dataDir: string, sql = ''): void {
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  raw.exec(further.sql + sql);
  raw.pragma(`user_version = ${furtherSchema}`);
  raw.close();
}

/** The platform that has filings in an earlier database. */
export const gallery = { callerId: 1, caller: 'gallery' };

/** Makes a database with a platform and two filings of it; then adds the further migration. */
export async function makeEarlierDatabase(t: TestContext) {
  original ??= createEarlierDatabase(temporaryFolder(t));
  const { from, filings } = await original;
  addFurtherMigration(t);
  const dataDir = temporaryFolder(t);
  copyFolder(from, dataDir);
  const file = join(dataDir, 'artseal.db');
  return { dataDir, file, filings, copy: copyBefore(file, presentSchema) };
}

/** The database that the others are copies of. */
let original: ReturnType<typeof createEarlierDatabase> | undefined;

async function createEarlierDatabase(from: string) {
  const store = createSqliteStore({ dataDir: from, ...sandbox });
  await addPlatform(store, gallery.caller);
  const filings = [await fileOne(store, gallery), await fileOne(store, gallery)];
  await store.close();
  return { from, filings };
}
