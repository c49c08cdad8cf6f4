import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import * as schema from '../../src/store/engine/schema.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox } from './promises/fixtures.ts';

const tables = Object.values(schema).filter((value) => is(value, SQLiteTable));

function openMigrated(t: TestContext) {
  const { database, close } = openDatabase({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(close);
  const { $client: client } = database;
  return { client, list: (query: string) => client.prepare(query).pluck().all() };
}

test('the migrations make the tables and columns of the schema, and no others', (t) => {
  const { client, list } = openMigrated(t);
  const made = list("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name");
  assert.deepEqual(made, tables.map((table) => getTableConfig(table).name).sort());
  for (const table of tables) {
    const { name, columns, primaryKeys } = getTableConfig(table);
    const keyed = new Set(primaryKeys.flatMap((key) => key.columns.map((column) => column.name)));
    const declared = columns.map((column) => ({
      name: column.name,
      type: column.getSQLType(),
      notnull: column.notNull,
      pk: column.primary || keyed.has(column.name),
    }));
    const info = client
      .prepare('SELECT name, lower(type) AS type, "notnull", pk > 0 AS pk FROM pragma_table_info(?)')
      .all(name) as { notnull: number; pk: number }[];
    const columnsMade = info.map((column) => ({
      ...column,
      notnull: column.notnull === 1,
      pk: column.pk === 1,
    }));
    assert.deepEqual(columnsMade, declared, name);
  }
});

test('the migrations make the unique indexes and indexes of the schema, and no others', (t) => {
  const { list } = openMigrated(t);
  const made = list("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name");
  const declared = tables.flatMap((table) => {
    const { name, columns, indexes } = getTableConfig(table);
    const unique = columns.filter((column) => column.isUnique).map((column) => column.uniqueName ?? name);
    return [...unique, ...indexes.map((index) => index.config.name)];
  });
  assert.deepEqual(made, declared.sort());
});

test('every table is STRICT', (t) => {
  const { list } = openMigrated(t);
  const ours = "schema = 'main' AND name NOT LIKE 'sqlite_%'";
  assert.deepEqual(list(`SELECT name FROM pragma_table_list WHERE strict = 0 AND ${ours}`), []);
});

test('the tables that are found by their whole key alone have no row id', (t) => {
  const { list } = openMigrated(t);
  const withoutRowId = list(
    "SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 1 ORDER BY name",
  );
  const keyed = tables
    .map((table) => getTableConfig(table))
    .filter(({ columns }) => !columns.some((column) => column.primary && column.getSQLType() === 'integer'))
    .map(({ name }) => name);
  assert.deepEqual(withoutRowId, keyed.sort());
});

test('a commit is on disk before it is answered, and the log shrinks after it has grown', (t) => {
  const { client } = openMigrated(t);
  const value = (name: string) => client.pragma(name, { simple: true });
  assert.deepEqual(['journal_mode', 'synchronous', 'foreign_keys'].map(value), ['wal', 2, 1]);
  assert.deepEqual(['wal_autocheckpoint', 'journal_size_limit'].map(value), [4_000, 33_554_432]);
});
