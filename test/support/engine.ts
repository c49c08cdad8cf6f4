import { join, resolve } from 'node:path';
import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { createDatabase } from './postgres.ts';

/** The variable that says where the tests of this process keep the records of their data folders: `postgres`, or else SQLite. */
export const engineVariable = 'ARTSEAL_TEST_ENGINE';

const isOnPostgres = (): boolean => process.env[engineVariable] === 'postgres';

/** For the `skip` of a test that has this reason not to run on PostgreSQL. */
export const skipOnPostgres = (reason: string): string | false => isOnPostgres() && reason;

/** The databases live as long as their cluster, as long as the process. */
const untilTheEnd = { after: () => {} };

/** The URLs of databases, by their data folder. */
const urls = new Map<string, Promise<string>>();

/** The database of a data folder, created at the first call; undefined if its records are in SQLite. */
async function databaseOf(dataDir: string): Promise<string | undefined> {
  if (!isOnPostgres()) return undefined;
  const folder = resolve(dataDir);
  const url = urls.get(folder) ?? createDatabase(untilTheEnd);
  urls.set(folder, url);
  return url;
}

/** The settings, with the database of their data folder if that is in PostgreSQL. */
export async function withDatabase<Env extends Readonly<Record<string, string>>>(env: Env): Promise<Env> {
  const { ARTSEAL_DATA_DIR: dataDir } = env;
  const url = dataDir === undefined ? undefined : await databaseOf(dataDir);
  return url === undefined ? env : { ARTSEAL_DATABASE_URL: url, ...env };
}

/** Reads the database of a data folder, which may be in use. One in PostgreSQL is copied to SQLite for this. */
export async function readDatabase<T>(dataDir: string, read: (client: Sqlite.Database) => T): Promise<T> {
  const url = await databaseOf(dataDir);
  const client =
    url === undefined ? new Sqlite(join(dataDir, 'artseal.db'), { readonly: true }) : await copyToSqlite(url);
  try {
    return read(client);
  } finally {
    client.close();
  }
}

const { INT8, JSON: JSON_TEXT } = pg.types.builtins;

/** Values as SQLite stores them. */
const types: pg.CustomTypesConfig = {
  getTypeParser: ((id: number, format?: 'text') => {
    if (id === INT8) return BigInt;
    return id === JSON_TEXT ? String : pg.types.getTypeParser(id, format);
  }) as typeof pg.types.getTypeParser,
};

/** Only tables that SQLite does not have contain these. */
const asInSqlite = (value: unknown) =>
  typeof value === 'boolean' || value instanceof Date ? `${value}` : value;

/** Copies the rows of all tables, as they are at one moment, to a database in memory. */
export async function copyToSqlite(url: string): Promise<Sqlite.Database> {
  const copy = new Sqlite(':memory:');
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const tables = await client.query<{ name: string }>(
      "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'",
    );
    for (const { name } of tables.rows) {
      const { fields, rows } = await client.query<unknown[]>({ text: `TABLE ${name}`, rowMode: 'array' });
      copy.exec(`CREATE TABLE ${name} (${fields.map((field) => `"${field.name}"`)})`);
      const insert = copy.prepare(`INSERT INTO ${name} VALUES (${fields.map(() => '?')})`);
      for (const row of rows) insert.run(...row.map(asInSqlite));
    }
  } finally {
    await client.end();
  }
  return copy;
}
