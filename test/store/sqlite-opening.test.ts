import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { DatabaseRefused } from '../../src/store/sqlite/database.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, sandbox } from './promises/fixtures.ts';

for (const [made, asked] of [
  ['sandbox', 'production'],
  ['production', 'sandbox'],
] as const) {
  test(`a ${made} database does not open as ${asked}, and stays what it is`, async (t) => {
    const dataDir = temporaryFolder(t);
    await createSqliteStore({ dataDir, ...sandbox, environment: made }).close();
    for (let tries = 0; tries < 2; tries += 1) {
      assert.throws(() => createSqliteStore({ dataDir, ...sandbox, environment: asked }), DatabaseRefused);
    }
    const store = createSqliteStore({ dataDir, ...sandbox, environment: made });
    t.after(() => store.close());
    assert.equal(await store.callers.isEmpty(), true);
  });
}

test('a database in one currency does not open in another, and stays what it is', async (t) => {
  const dataDir = temporaryFolder(t);
  await createSqliteStore({ dataDir, ...sandbox }).close();
  for (const currency of ['USD', 'cny', '']) {
    assert.throws(
      () => createSqliteStore({ dataDir, ...sandbox, currency }),
      (error) => {
        assert.ok(error instanceof DatabaseRefused);
        assert.match(error.message, /artseal\.db.* in CNY .*ARTSEAL_CURRENCY.*ARTSEAL_DATA_DIR/);
        return true;
      },
    );
  }
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => raw.close());
  assert.equal(raw.prepare('SELECT currency FROM deployment').pluck().get(), 'CNY');
  await createSqliteStore({ dataDir, ...sandbox }).close();
});

test('a new database is stamped with its currency, whichever that is', async (t) => {
  for (const currency of ['CNY', 'USD', 'JPY']) {
    const dataDir = temporaryFolder(t);
    await createSqliteStore({ dataDir, ...sandbox, currency }).close();
    await createSqliteStore({ dataDir, ...sandbox, currency }).close();
    const raw = new Sqlite(join(dataDir, 'artseal.db'));
    t.after(() => raw.close());
    assert.equal(raw.prepare('SELECT currency FROM deployment').pluck().get(), currency);
  }
});

test('a database of a newer schema is refused and left as it is', async (t) => {
  const dataDir = temporaryFolder(t);
  const store = createSqliteStore({ dataDir, ...sandbox });
  await addPlatform(store, 'gallery');
  await store.close();
  const raw = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => raw.close());
  const version = Number(raw.pragma('user_version', { simple: true }));
  raw.pragma(`user_version = ${version + 1}`);
  assert.throws(() => createSqliteStore({ dataDir, ...sandbox }), DatabaseRefused);
  assert.equal(raw.pragma('user_version', { simple: true }), version + 1);
  raw.pragma(`user_version = ${version}`);
  const again = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => again.close());
  assert.equal((await again.callers.findPlatform('gallery'))?.caller, 'gallery');
});

test('what is no database is refused and not overwritten', async (t) => {
  const dataDir = temporaryFolder(t);
  const file = join(dataDir, 'artseal.db');
  const content = 'not a database '.repeat(500);
  writeFileSync(file, content);
  assert.throws(() => createSqliteStore({ dataDir, ...sandbox }));
  assert.equal(readFileSync(file, 'utf8'), content);
});

test('the folder is made, for this user alone', async (t) => {
  const dataDir = join(temporaryFolder(t), 'a', 'b');
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  assert.equal(statSync(dataDir).mode & 0o077, 0);
});
