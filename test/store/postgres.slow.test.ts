import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import pg from 'pg';
import { grantsFor } from '../../src/store/postgres/roles.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { migrate } from '../../src/store/postgres/upgrade.ts';
import { createDatabase, postgresBinaries, skipUnlessPostgres } from '../support/postgres.ts';
import type { StoreEngine } from './promises/fixtures.ts';
import { storeSuite } from './store-suite.ts';

/** The databases of data folders. */
const databases = new Map<string, string>();

/** Databases end with their cluster, which ends with this process. */
const untilTheEnd = { after: () => {} };

/** The role that serves. */
const app = 'app';

async function makeTables(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await migrate(client);
  await client.query(`CREATE ROLE ${app} LOGIN`);
  await client.query(grantsFor({ app, reader: undefined }).join('\n'));
  await client.end();
}

const binary = (name: string): string => join(postgresBinaries() ?? '', name);

const dumpIn = (folder: string): string => join(folder, 'dump.sql');

/** The database of a folder: of a store that was open, of a copy, or a new one. */
async function databaseOf(dataDir: string): Promise<string> {
  const known = databases.get(dataDir);
  if (known !== undefined) return known;
  const isCopy = existsSync(dumpIn(dataDir));
  const url = await createDatabase(untilTheEnd, isCopy ? {} : { template: makeTables });
  if (isCopy) execFileSync(binary('psql'), [url, '--quiet', '--file', dumpIn(dataDir)]);
  databases.set(dataDir, url);
  return url;
}

const postgres: StoreEngine = {
  open: async ({ dataDir, environment, currency, opening }) => {
    const isNew = !databases.has(dataDir);
    const url = await databaseOf(dataDir);
    const options = { environment, currency, opening: isNew ? 'EITHER' : opening };
    // The owner of the tables binds them.
    if (isNew) await (await openPostgresStore({ place: { url }, ...options })).close();
    return openPostgresStore({ place: { url: url.replace('postgres@', `${app}@`) }, ...options });
  },
  copyAsCrashed: (dataDir, copy) => {
    mkdirSync(copy);
    // What a transaction has committed is in the dump, whatever the store does at that moment.
    execFileSync(binary('pg_dump'), [`--file=${dumpIn(copy)}`, databases.get(dataDir) ?? '']);
  },
};

const why = skipUnlessPostgres();
if (why === false) storeSuite('PostgreSQL', postgres);
else test('the store on PostgreSQL', { skip: why });
