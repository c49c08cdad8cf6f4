import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { is } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import pg from 'pg';
import * as schema from '../../src/store/engine/schema.ts';
import { types } from '../../src/store/postgres/statement.ts';
import { openPostgresStore } from '../../src/store/postgres/store.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { recordRestorationIn } from '../../src/store/sqlite/restoration.ts';
import { perform } from '../../src/store/store.ts';
import {
  addPlatform,
  addService,
  fileOne,
  newLogKey,
  orderIn,
  registerBoth,
  sandbox,
  states,
} from '../store/promises/fixtures.ts';
import { createRandomRequests } from '../store/random-requests.ts';
import { artsealWith } from '../support/artseal.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { createRandom } from '../support/random.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

const skip = skipUnlessPostgres();

const filedAtOnce = 100;

/** Commands whose random arguments are not of this log. */
const ofLog = ['NameLog', 'ForkLog', 'RotateLogKey', 'EndLogKey', 'KeepCheckpoint', 'KeepTimeStamp'];

/** A data folder with at least `filings` filings, after so many random requests as well. */
async function filled(t: TestContext, filings: number, requests: number): Promise<string> {
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  const made = createRandomRequests(createRandom(1));
  const origin = 'log.example';
  const key = newLogKey({ vkey: `${origin}+12345678+${'A'.repeat(44)}` });
  await store.execute({ effect: { kind: 'NameLog', origin, key } });
  await addPlatform(store, 'gallery');
  const by = { callerId: 1, caller: 'gallery' };
  await registerBoth(store, 'gallery');
  await addService(store, 'accounting');
  for (const state of states) await orderIn(store, by, state);
  for (let filed = 0; filed < filings; filed += filedAtOnce)
    await Promise.all(Array.from({ length: filedAtOnce }, () => fileOne(store, by)));
  for (let sent = 0; sent < requests; ) {
    const batch = made.nextBatch().filter(({ effect }) => !ofLog.includes(effect?.kind ?? ''));
    const replies = await Promise.allSettled(batch.map((request) => store.execute(request)));
    for (const [nth, reply] of replies.entries()) {
      const request = batch[nth];
      if (reply.status === 'fulfilled' && request !== undefined) made.learn(request, reply.value);
    }
    sent += batch.length;
  }
  const { size, root } = await perform(store, { kind: 'GetTree' });
  const note = `${origin}\n${size}\n${Buffer.from(root).toString('base64')}\n`;
  await perform(store, { kind: 'KeepCheckpoint', size, note, publishedAtS: 1 });
  await store.close();
  // As after a restore: numbers and sequences of events have gaps.
  const client = new Sqlite(join(dataDir, 'artseal.db'));
  const restored = { takenAtS: 1, restoredAtS: 2, years: [2026], numbersAfter: 'AS-2026-200000' };
  await recordRestorationIn(drizzle({ client }), { ...restored, random: () => 0 });
  client.close();
  return dataDir;
}

/** Tables that are laid out for SQLite's pages. */
const ofSqlite = ['event_head', 'event_log', 'event_mark', 'latest_filing', 'spent_nonces'];

const tables = Object.values(schema)
  .filter((value) => is(value, SQLiteTable))
  .map((table) => getTableConfig(table).name);

type Rows = Readonly<Record<string, readonly unknown[]>>;

/** The rows of all tables of a folder. */
function rowsIn(dataDir: string): Rows {
  const client = new Sqlite(join(dataDir, 'artseal.db'), { readonly: true });
  const rows = tables.map((name) => [name, client.prepare(`SELECT * FROM ${name}`).all()] as const);
  client.close();
  return Object.fromEntries(rows);
}

/** The rows of all tables that both engines have, in any order, without the chain of SQLite. */
const shared = (rows: Rows): Rows =>
  Object.fromEntries(
    Object.entries(rows)
      .filter(([name]) => !ofSqlite.includes(name))
      .map(([name, all]) => [
        name,
        all.map((row) => JSON.stringify({ ...(row as object), previous_id: undefined })).sort(),
      ]),
  );

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, types });
  await client.connect();
  return client;
}

async function rowsAt(url: string): Promise<Rows> {
  const client = await connect(url);
  const rows: Record<string, readonly unknown[]> = {};
  for (const name of tables.filter((each) => !ofSqlite.includes(each)))
    rows[name] = (await client.query(`SELECT * FROM ${name}`)).rows;
  await client.end();
  return rows;
}

test('move takes a hundred thousand filings to PostgreSQL and back', { skip }, async (t) => {
  const dataDir = await filled(t, 100_000, 3_000);
  const url = await createDatabase(t);
  const inFolder = { ARTSEAL_DATA_DIR: dataDir };
  const before = rowsIn(dataDir);
  assert.deepEqual(
    tables.filter((name) => before[name]?.length === 0),
    [],
  );
  const moved = await artsealWith(inFolder).json(['move', '--to', url]);
  assert.deepEqual([moved.to, moved.kept], [url, join(dataDir, 'artseal.db.moved')]);
  assert.equal(moved.rows.filing, before.filing?.length);
  assert.deepEqual(shared(await rowsAt(url)), shared(before));
  assert.ok(!existsSync(join(dataDir, 'artseal.db')));
  await artsealWith(inFolder).errors(1, 'key list', /was moved to postgres:/);

  const onPostgres = { ...inFolder, ARTSEAL_DATABASE_URL: url };
  await artsealWith(onPostgres).errors(2, 'move --to /elsewhere', /needs --to .*ARTSEAL_DATA_DIR/);
  await artsealWith(onPostgres).lines(['move', '--to', dataDir]);
  const after = rowsIn(dataDir);
  assert.deepEqual(shared(after), shared(before));
  assert.deepEqual(after.filing, before.filing);
  for (const name of ['event_head', 'latest_filing', 'event_mark'])
    assert.deepEqual(after[name], before[name], name);
  assert.ok(!readdirSync(dataDir).includes('artseal.db.partial'));
});

test('a registry with a changed record is not moved, and stays as it is', { skip }, async (t) => {
  const dataDir = await filled(t, 100, 0);
  const [url, other] = [await createDatabase(t), await createDatabase(t)];
  const inFolder = { ARTSEAL_DATA_DIR: dataDir };
  const file = join(dataDir, 'artseal.db');
  const sound = readFileSync(file);
  const forge = 'UPDATE filing SET author = author || 1 WHERE id = (SELECT max(id) FROM filing)';
  const forged = new Sqlite(file);
  forged.exec(`DROP TRIGGER filing_never_changes; ${forge}`);
  forged.close();
  await artsealWith(inFolder).errors(
    1,
    ['move', '--to', url],
    /is not moved: AS-\d+-\d+ is not what its evidence hash was made of/,
  );
  assert.ok(existsSync(file));
  const client = await connect(url);
  t.after(() => client.end());
  const tablesOf = "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace";
  assert.deepEqual((await client.query(tablesOf)).rows, []);

  writeFileSync(file, sound);
  await client.query('CREATE TABLE schema_version AS SELECT 1 AS version');
  await artsealWith(inFolder).errors(1, ['move', '--to', url], /has the tables .* name an empty one/);
  await client.query('DROP TABLE schema_version');
  const onOther = { ...inFolder, ARTSEAL_DATABASE_URL: other };
  await artsealWith(onOther).errors(1, 'key list', /artseal.db is there: run artseal move/);

  await artsealWith(inFolder).lines(['move', '--to', url]);
  await client.query(`ALTER TABLE filing DISABLE TRIGGER filing_never_changes; ${forge}`);
  const onPostgres = { ...inFolder, ARTSEAL_DATABASE_URL: url };
  await artsealWith(onPostgres).errors(1, ['move', '--to', dataDir], /AS-\d+-\d+ is not what/);
  assert.deepEqual(readdirSync(dataDir).sort(), ['artseal.db.moved', 'artseal.lock', 'moved-database.json']);
  const store = await openPostgresStore({ place: { url }, ...sandbox });
  await store.close();
});
