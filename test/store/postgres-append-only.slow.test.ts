import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type pg from 'pg';
import { migrate } from '../../src/store/postgres/upgrade.ts';
import { migrations as sqliteMigrations } from '../../src/store/sqlite/upgrade.ts';
import { connectTo, createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { appendOnlySuite, keptTables, leaf } from './append-only.ts';

const skip = skipUnlessPostgres();

async function migrated(t: TestContext): Promise<pg.Client> {
  const client = await connectTo(t, await createDatabase(t));
  await migrate(client);
  return client;
}

const another = leaf("(99, '{}', '', 99)").replace('log_leaf', 'public.log_leaf');

const code = '23000';
/** Sessions of clients, and of a replication. */
const sessions = ['origin', 'replica'].map((role) => `SET session_replication_role = ${role}`);

appendOnlySuite({
  ...{ name: 'PostgreSQL', skip, sessions, code, codeOfReplaced: '23505' },
  bytes: (hex) => `'\\x${hex}'`,
  open: async (t) => {
    const client = await migrated(t);
    return {
      run: (statement) => client.query(statement),
      rows: async (table) => (await client.query(`SELECT * FROM public.${table}`)).rows,
    };
  },
  removals: (table) => [`TRUNCATE ${table} CASCADE`],
  forbidden: {
    'a party is kept': ['TRUNCATE caller CASCADE'],
    // Another table of that name makes no difference.
    'a leaf of the log follows the last one': [`CREATE TEMP TABLE log_leaf AS SELECT 98 AS id; ${another}`],
  },
});

test('events and leaves are stored if they follow the last ones, and events never change', {
  skip,
}, async (t) => {
  const client = await migrated(t);
  const event = (...positions: readonly number[]) => {
    const rows = positions.map((at) => `(${at}, 1, ${at}, '', 1)`);
    return `INSERT INTO event (position, caller_id, sequence, type, at_ms) VALUES ${rows.join()}`;
  };
  await client.query("INSERT INTO caller (id, name) VALUES (1, 'gallery')");
  const stored = [event(1), event(2, 3), event(5, 7), event(8), leaf("(0, '', '', 0), (9, '', '', 1)")];
  for (const statement of stored) await client.query(statement);
  for (const session of sessions) {
    await client.query(session);
    for (const statement of [event(0), event(0, 9)])
      await assert.rejects(client.query(statement), { message: 'an event follows those before it', code });
    await assert.rejects(client.query('UPDATE event SET at_ms = 2'), {
      message: 'an event never changes',
      code,
    });
  }
});

test('each promise that a trigger keeps on SQLite has one on PostgreSQL', { skip }, async (t) => {
  const client = await migrated(t);
  const made = sqliteMigrations.flatMap(({ sql }) =>
    Array.from(sql.matchAll(/CREATE TRIGGER `(\w+)`/g), ([, name = '']) => name),
  );
  // Unique indexes do what the former are for; SQLite alone has the chain of the latter.
  const promises = [...new Set(made)].filter((name) => !/_never_replaced$|^filing_is_latest$/.test(name));
  const truncations = keptTables.map((table) => `${table}_is_not_truncated`);
  const { rows } = await client.query<{ name: string }>(
    "SELECT tgname AS name FROM pg_trigger WHERE NOT tgisinternal AND tgname NOT LIKE '%_takes_id'",
  );
  assert.deepEqual(
    rows.map(({ name }) => name).sort(),
    [...promises.map((name) => name.replace('event_log', 'event')), ...truncations].sort(),
  );
});
