import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { is } from 'drizzle-orm';
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import * as schema from '../../src/store/sqlite/schema.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { sandbox } from './promises/fixtures.ts';

const root = join(import.meta.dirname, '..', '..');
const engine = join(root, 'src', 'store', 'sqlite');
const tables = Object.values(schema).filter((value) => is(value, SQLiteTable));

function openMigrated(t: TestContext) {
  const { $client: client } = openDatabase({ dataDir: temporaryFolder(t), ...sandbox });
  t.after(() => client.close());
  return client;
}

test('drizzle-kit finds nothing to generate: the migrations say what the schema says', (t) => {
  const folder = temporaryFolder(t);
  cpSync(join(engine, 'migrations'), join(folder, 'migrations'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
  const config = { dialect: 'sqlite', schema: join(engine, 'schema.ts'), out: './migrations' };
  writeFileSync(join(folder, 'drizzle.config.json'), JSON.stringify(config));
  const files = () =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .filter((name) => !name.startsWith('node_modules'))
      .sort();
  const before = files();
  const kit = join(root, 'node_modules', 'drizzle-kit', 'bin.cjs');
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [kit, 'generate', '--config', 'drizzle.config.json'],
    { cwd: folder, encoding: 'utf8' },
  );
  assert.equal(status, 0, stderr);
  assert.match(stdout, /No schema changes/);
  assert.deepEqual(files(), before);
});

test('the migrations make the tables and columns of the schema, and no others', (t) => {
  const client = openMigrated(t);
  const made = client
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .pluck()
    .all();
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
    const info = client.pragma(`table_info(${name})`) as Record<
      'name' | 'type' | 'notnull' | 'pk',
      unknown
    >[];
    assert.deepEqual(
      info.map((column) => ({
        name: column.name,
        type: String(column.type).toLowerCase(),
        notnull: column.notnull === 1,
        pk: Number(column.pk) > 0,
      })),
      declared,
      name,
    );
  }
});

test('the migrations make the unique indexes and indexes of the schema, and no others', (t) => {
  const client = openMigrated(t);
  const made = client
    .prepare("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL ORDER BY name")
    .pluck()
    .all();
  const declared = tables.flatMap((table) => {
    const { name, columns, indexes } = getTableConfig(table);
    const unique = columns.filter((column) => column.isUnique).map((column) => column.uniqueName ?? name);
    return [...unique, ...indexes.map((index) => index.config.name)];
  });
  assert.deepEqual(made, declared.sort());
});

test('every table is STRICT', (t) => {
  const client = openMigrated(t);
  const lax = client
    .prepare(
      "SELECT name FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite_%'",
    )
    .pluck()
    .all();
  assert.deepEqual(lax, []);
});

test('the tables that are found by their whole key alone have no row id', (t) => {
  const client = openMigrated(t);
  const withoutRowId = client
    .prepare("SELECT name FROM pragma_table_list WHERE schema = 'main' AND wr = 1 ORDER BY name")
    .pluck()
    .all();
  const keyed = tables
    .map((table) => getTableConfig(table))
    .filter(({ columns }) => !columns.some((column) => column.primary && column.getSQLType() === 'integer'))
    .map(({ name }) => name);
  assert.deepEqual(withoutRowId, keyed.sort());
});

test('a commit is on disk before it is answered: write-ahead log, synchronous FULL, foreign keys', (t) => {
  const client = openMigrated(t);
  const value = (name: string) => client.pragma(name, { simple: true });
  assert.deepEqual(['journal_mode', 'synchronous', 'foreign_keys'].map(value), ['wal', 2, 1]);
});
