import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { eq } from 'drizzle-orm';
import { integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type pg from 'pg';
import type { Database } from '../../src/store/engine/statement.ts';
import { connect } from '../../src/store/postgres/connection.ts';
import {
  classifyError,
  isDamage,
  isMachineFault,
  isRepeatable,
} from '../../src/store/postgres/postgres-errors.ts';
import { forHandlers, rewritten } from '../../src/store/postgres/statement.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';

const skip = skipUnlessPostgres();

const work = sqliteTable('work', {
  id: integer('id').primaryKey(),
  title: text('title').notNull(),
});

const createWork = 'CREATE TABLE work (id bigint PRIMARY KEY, title text NOT NULL UNIQUE)';

/** A new database with an empty table `work`. */
async function open(t: TestContext): Promise<{ client: pg.Client; database: Database; url: string }> {
  const url = await createDatabase(t);
  const client = await connect({ url });
  t.after(() => client.end());
  await client.query(createWork);
  return { client, database: forHandlers(client), url };
}

test('placeholders are numbered, but not those in strings and identifiers', () => {
  assert.equal(
    rewritten(`select ? as "why?", 'it''s ?', '?', "a""?" from "t" where "x" in (?, ?)`),
    `select $1 as "why?", 'it''s ?', '?', "a""?" from "t" where "x" in ($2, $3)`,
  );
  assert.equal(rewritten('select 1'), 'select 1');
});

test('the target of a conflict loses its table, and nothing else does', () => {
  assert.equal(
    rewritten(`insert into "t" ("a", "b") values (?, ' on conflict ("t"."a")')
      on conflict ("t"."a", "t"."b") do update set "a" = "t"."a" + ? where "t"."b" = ?`),
    `insert into "t" ("a", "b") values ($1, ' on conflict ("t"."a")')
      on conflict ("a", "b") do update set "a" = "t"."a" + $2 where "t"."b" = $3`,
  );
  assert.equal(
    rewritten('insert into "t" values (?) on conflict do nothing'),
    'insert into "t" values ($1) on conflict do nothing',
  );
});

test('an integer that JavaScript cannot hold is an error, and the connection goes on', {
  skip,
}, async (t) => {
  const { database, client } = await open(t);
  const { $driver: driver } = database;
  await assert.rejects(driver.all('select 9007199254740993::bigint as n', []), RangeError);
  await assert.rejects(driver.all('select 9007199254740993::numeric as n', []), RangeError);
  assert.deepEqual(await driver.all('select 1.5::numeric as n, 9007199254740991::bigint as m', []), [
    { n: 1.5, m: 2 ** 53 - 1 },
  ]);
  assert.deepEqual((await client.query('select 1::bigint as n')).rows, [{ n: 1 }]);
});

test('a statement is prepared once in a session', { skip }, async (t) => {
  const { database, client } = await open(t);
  const query = database.select({ id: work.id }).from(work).where(eq(work.title, 'one'));
  // The second one is sent before the reply to the first.
  await Promise.all([query.all(), query.all()]);
  await query.all();
  await forHandlers(client).select({ id: work.id }).from(work).where(eq(work.title, 'two')).all();
  const { rows } = await client.query(
    `SELECT statement, generic_plans + custom_plans AS runs FROM pg_prepared_statements WHERE statement LIKE '%"work"%'`,
  );
  assert.deepEqual(rows, [{ statement: rewritten(query.toSQL().sql), runs: 4 }]);
});

test('a query that fails leaves those after it as they are', { skip }, async (t) => {
  const { database } = await open(t);
  const insert = (id: number, title: string) => database.insert(work).values({ id, title }).run();
  const [first, second, third] = await Promise.allSettled([
    insert(1, 'one'),
    insert(2, 'one'),
    insert(3, 'three'),
  ]);
  assert.deepEqual([first.status, second.status, third.status], ['fulfilled', 'rejected', 'fulfilled']);
  assert.equal(await database.$count(work), 2);
});

/** The error that a promise rejects with. */
async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('it did not reject');
}

/** What each function says of an error. */
function meaningOf(error: unknown) {
  const asked = { isMachineFault, isDamage, isRepeatable };
  const said = Object.entries(asked).filter(([, ask]) => ask(error));
  return [...said.map(([name]) => name), classifyError(error)];
}

test('errors of statements are classified by their SQLSTATE', { skip }, async (t) => {
  const { database, client } = await open(t);
  await database.insert(work).values({ id: 1, title: 'one' }).run();
  const again = database.insert(work).values({ id: 1, title: 'two' }).run();
  assert.deepEqual(meaningOf(await errorOf(again)), [undefined]);
  const untitled = database.$driver.run('insert into work (id) values (?)', [2]);
  assert.deepEqual(meaningOf(await errorOf(untitled)), [undefined]);
  assert.deepEqual(meaningOf(await errorOf(database.$driver.run('select ?', ['x', 'y']))), [undefined]);
  const raised = async (code: string) =>
    meaningOf(await errorOf(client.query(`DO $$ BEGIN RAISE EXCEPTION USING ERRCODE = '${code}'; END $$`)));
  for (const code of ['40001', '40P01', '55P03'])
    assert.deepEqual(await raised(code), ['isRepeatable', undefined]);
  for (const code of ['XX001', 'XX002']) assert.deepEqual(await raised(code), ['isDamage', 'DAMAGE']);
  for (const code of ['08006', '25006', '53100', '57014', '57P03', '58030'])
    assert.deepEqual(await raised(code), ['isMachineFault', 'FAULT']);
  for (const code of ['22001', '42601', 'P0001', 'XX000']) assert.deepEqual(await raised(code), [undefined]);
});

test('every query of a connection that is lost fails by the machine', { skip }, async (t) => {
  const { database, client, url } = await open(t);
  const other = await connect({ url });
  t.after(() => other.end());
  const ended = new Promise((resolve) => client.once('end', resolve));
  const { rows } = await client.query<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid');
  const running = [database.$driver.all('select pg_sleep(60)', []), database.$driver.all('select 1', [])];
  const errors = Promise.all(running.map(errorOf));
  await other.query('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
  for (const error of await errors) assert.deepEqual(meaningOf(error), ['isMachineFault', 'FAULT']);
  await ended;
  assert.deepEqual(meaningOf(await errorOf(database.select().from(work).all())), ['isMachineFault', 'FAULT']);
});
