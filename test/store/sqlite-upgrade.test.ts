import assert from 'node:assert/strict';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { DatabaseError } from '../../src/store/engine/failure.ts';
import { openDatabase } from '../../src/store/sqlite/database.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { FolderInUse, lockFolder } from '../../src/store/sqlite/folder-lock.ts';
import { faultsInLog } from '../../src/store/sqlite/log-check.ts';
import { copyBefore, planUpgrade, rejectWithoutRoom } from '../../src/store/sqlite/upgrade.ts';
import { startService, type TestService } from '../support/service.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import {
  further,
  furtherSchema,
  gallery,
  makeEarlierDatabase,
  presentSchema,
  upgradeFurther,
} from './further-migration.ts';
import { crashCopy, fileOne, sandbox } from './promises/fixtures.ts';

/** Opens a database, which upgrades it. */
function open(t: TestContext, dataDir: string) {
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  return store;
}

async function upgrade(t: TestContext, dataDir: string): Promise<void> {
  await open(t, dataDir).close();
}

/** Everything in a database: its schema, and the rows of all tables. */
function contentOf(file: string) {
  const raw = new Sqlite(file, { readonly: true });
  try {
    assert.equal(raw.pragma('integrity_check', { simple: true }), 'ok');
    assert.deepEqual(raw.pragma('foreign_key_check'), []);
    const objects = raw.prepare<[], { type: string; name: string; sql: string | null }>(
      'SELECT type, name, sql FROM sqlite_schema ORDER BY type, name',
    );
    const schema = objects.all();
    const tables = schema.filter(({ type }) => type === 'table');
    return {
      version: raw.pragma('user_version', { simple: true }),
      schema,
      rows: tables.map(({ name }) => [name, raw.prepare(`SELECT * FROM ${name}`).raw().all()]),
    };
  } finally {
    raw.close();
  }
}

test('an upgrade makes a copy of what was there, and keeps all rows', async (t) => {
  const { dataDir, file, filings, copy } = await makeEarlierDatabase(t);
  const earlier = contentOf(file);
  const store = open(t, dataDir);
  assert.deepEqual(store.upgrade, { fromSchema: presentSchema, toSchema: furtherSchema });
  assert.deepEqual(contentOf(copy), earlier);
  assert.equal(statSync(copy).mode & 0o777, 0o600);
  const expanded = earlier.rows.map(([name, rows]) => [
    name,
    (rows as unknown[][]).map((row) => [...row, null]),
  ]);
  assert.deepEqual(contentOf(file).rows, expanded);
  assert.deepEqual(await faultsInLog(file), []);
  const next = filings.length + 1;
  assert.equal(await fileOne(store, gallery), `AS-2026-${String(next).padStart(6, '0')}`);
});

test('a copy includes what is in the write-ahead log, and is made only if a migration is due', async (t) => {
  const { dataDir, file, copy } = await makeEarlierDatabase(t);
  const other = new Sqlite(file);
  other.pragma('journal_mode = WAL');
  other.exec("INSERT INTO caller (id, name, tier) VALUES (2, 'in the log', 'TRIAL')");
  assert.ok(existsSync(`${file}-wal`));
  await upgrade(t, dataDir);
  other.close();
  const raw = new Sqlite(copy, { readonly: true });
  assert.equal(raw.prepare('SELECT count(*) FROM caller').pluck().get(), 2);
  raw.close();
  const names = readdirSync(dataDir);
  const content = contentOf(file);
  await upgrade(t, dataDir);
  assert.deepEqual(readdirSync(dataDir), names);
  assert.deepEqual(contentOf(file), content);
});

test('the copies of the last two upgrades are kept, and none of a later schema', async (t) => {
  const { dataDir, file } = await makeEarlierDatabase(t);
  // As if this schema had been upgraded to later ones before an operator went back.
  for (const schema of [0, presentSchema + 1, presentSchema + 2]) writeFileSync(copyBefore(file, schema), '');
  await upgrade(t, dataDir);
  const copies = readdirSync(dataDir).filter((name) => name.endsWith('.backup'));
  assert.deepEqual(copies.sort(), [
    'artseal.db.schema-0.backup',
    `artseal.db.schema-${presentSchema}.backup`,
  ]);
});

test('a database that another process uses, or of another deployment, is not upgraded', async (t) => {
  const { dataDir, file } = await makeEarlierDatabase(t);
  const before = contentOf(file);
  for (const other of [{ environment: 'production' }, { currency: 'USD' }] as const)
    assert.throws(() => createSqliteStore({ dataDir, ...sandbox, ...other }), DatabaseError);
  const lock = lockFolder(dataDir);
  assert.throws(() => open(t, dataDir), FolderInUse);
  assert.deepEqual(contentOf(file), before);
  assert.equal(planUpgrade(dataDir).isInUse, true);
  lock.release();
  await upgrade(t, dataDir);
  assert.equal(contentOf(file).version, furtherSchema);
  assert.equal(planUpgrade(dataDir).isInUse, false);
});

test('a database of a later version is used, and keeps its schema', async (t) => {
  const dataDir = temporaryFolder(t);
  await upgrade(t, dataDir);
  upgradeFurther(dataDir);
  const file = join(dataDir, 'artseal.db');
  const before = contentOf(file);
  await upgrade(t, dataDir);
  assert.deepEqual(contentOf(file), before);
  assert.equal(open(t, dataDir).upgrade, undefined);
  const { schema, newSchema, migrations } = planUpgrade(dataDir);
  assert.deepEqual([schema, newSchema, migrations], [furtherSchema, furtherSchema, []]);
});

test('a database that needs a later version is not opened, and the error names that version', async (t) => {
  const dataDir = temporaryFolder(t);
  await upgrade(t, dataDir);
  upgradeFurther(dataDir, `UPDATE oldest_version SET schema = ${furtherSchema}, version = '1.3.0'`);
  const file = join(dataDir, 'artseal.db');
  const before = contentOf(file);
  const message = `${file} needs artseal 1.3.0 or later: it has schema ${furtherSchema}, and this version knows ${presentSchema}.`;
  assert.throws(() => open(t, dataDir), { name: 'DatabaseError', message });
  assert.throws(() => planUpgrade(dataDir), { name: 'DatabaseError', message });
  assert.deepEqual(contentOf(file), before);
});

test('a plan says what an upgrade does, and changes nothing', async (t) => {
  const { dataDir, file, copy } = await makeEarlierDatabase(t);
  const bytes = readFileSync(file);
  const plan = planUpgrade(dataDir);
  assert.partialDeepStrictEqual(plan, {
    database: file,
    schema: presentSchema,
    newSchema: furtherSchema,
    migrations: [further.name],
    copy,
    isInUse: false,
  });
  assert.ok(plan.neededBytes >= 2 * bytes.length && plan.freeBytes > 0 && plan.estimatedS >= 1);
  assert.deepEqual(readFileSync(file), bytes);
  assert.ok(!existsSync(copy));
});

test('a plan leaves the log of a killed process, so the next start still checks the database', async (t) => {
  const dataDir = temporaryFolder(t);
  open(t, dataDir);
  const killed = crashCopy(t, dataDir);
  planUpgrade(killed);
  assert.notEqual(open(t, killed).checkedMs, undefined);
});

test('an upgrade needs room for the copy, unless it makes none', async (t) => {
  const { dataDir, file, copy } = await makeEarlierDatabase(t);
  assert.throws(
    () => rejectWithoutRoom(file, 2_000, 1_000),
    /needs .* MB free beside it .* artseal upgrade --without-copy/,
  );
  const older = copyBefore(file, 0);
  writeFileSync(older, '');
  openDatabase({ dataDir, ...sandbox }, { keepsCopy: false }).close();
  assert.equal(contentOf(file).version, furtherSchema);
  assert.ok(!existsSync(copy));
  assert.ok(!existsSync(older), 'older copies are removed');
});

test('a migration that fails leaves the database as it was', async (t) => {
  const { dataDir, file } = await makeEarlierDatabase(t);
  const change = (sql: string) => {
    const raw = new Sqlite(file);
    raw.exec(sql);
    raw.close();
  };
  // In the way of the last statement of the migration.
  const last = /ALTER TABLE (\w+) ADD further text;$/.exec(further.sql)?.[1];
  change(`ALTER TABLE ${last} ADD further text`);
  const before = contentOf(file);
  assert.throws(() => openDatabase({ dataDir, ...sandbox }));
  assert.deepEqual(contentOf(file), before);
  change(`ALTER TABLE ${last} DROP further`);
  openDatabase({ dataDir, ...sandbox }).close();
  assert.equal(contentOf(file).version, furtherSchema);
});

test('a server logs once that it upgraded the database', async (t) => {
  const { dataDir } = await makeEarlierDatabase(t);
  // Its key was encrypted with no real master key.
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  raw.exec("UPDATE api_key SET status = 'REVOKED'");
  raw.close();
  const upgrades = ({ logLines }: TestService) =>
    logLines.map((line) => JSON.parse(line)).filter(({ msg }) => /upgraded/.test(msg));
  const options = {
    dataDir,
    env: { ARTSEAL_MASTER_KEY: `k1:${'0'.repeat(64)}` },
  };
  const service = await startService(t, options);
  const [upgraded, ...more] = upgrades(service);
  assert.deepEqual([upgraded?.fromSchema, upgraded?.toSchema], [presentSchema, furtherSchema]);
  assert.deepEqual(more, []);
  await service.close();
  assert.deepEqual(upgrades(await startService(t, options)), []);
});
