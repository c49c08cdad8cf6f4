import assert from 'node:assert/strict';
import { hash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { DatabaseError } from '../../src/store/sqlite/location.ts';
import { perform } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, sandbox } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

for (const [made, asked] of [
  ['sandbox', 'production'],
  ['production', 'sandbox'],
] as const) {
  test(`a ${made} database does not open as ${asked}, and does not change`, async (t) => {
    const dataDir = temporaryFolder(t);
    await createSqliteStore({ dataDir, ...sandbox, environment: made }).close();
    for (let tries = 0; tries < 2; tries += 1) {
      assert.throws(() => createSqliteStore({ dataDir, ...sandbox, environment: asked }), DatabaseError);
    }
    const store = createSqliteStore({ dataDir, ...sandbox, environment: made });
    t.after(() => store.close());
    assert.equal(await perform(store, { kind: 'HasCallers' }), false);
  });
}

test('a database is bound to its currency, and does not open in another', async (t) => {
  for (const currency of ['CNY', 'JPY']) {
    const dataDir = temporaryFolder(t);
    const open = (other = currency) => createSqliteStore({ dataDir, ...sandbox, currency: other });
    await open().close();
    const message = new RegExp(`artseal\\.db.* in ${currency} .*ARTSEAL_CURRENCY.*ARTSEAL_DATA_DIR`);
    for (const other of ['USD', 'cny', ''])
      assert.throws(() => open(other), { name: 'DatabaseError', message });
    const raw = openRaw(t, dataDir);
    assert.equal(raw.prepare('SELECT currency FROM deployment').pluck().get(), currency);
    await open().close();
  }
});

test('a file that is no database is rejected and not overwritten', async (t) => {
  const dataDir = temporaryFolder(t);
  const file = join(dataDir, 'artseal.db');
  const content = 'not a database '.repeat(500);
  writeFileSync(file, content);
  assert.throws(() => createSqliteStore({ dataDir, ...sandbox }));
  assert.equal(readFileSync(file, 'utf8'), content);
});

test('the folder is created for this user alone', async (t) => {
  const dataDir = join(temporaryFolder(t), 'a', 'b');
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  assert.equal(statSync(dataDir).mode & 0o077, 0);
});

/** A folder with a store as after kill -9: all is in the log. */
async function leftOpen(t: TestContext): Promise<(name: string) => string> {
  const [from, to] = [temporaryFolder(t), temporaryFolder(t)];
  const store = createSqliteStore({ dataDir: from, ...sandbox });
  t.after(() => store.close());
  await addPlatform(store, 'gallery');
  for (const name of readdirSync(from)) copyFileSync(join(from, name), join(to, name));
  assert.ok(statSync(join(to, 'artseal.db')).size <= 4_096);
  return (name) => join(to, name);
}

for (const opening of ['NEW', 'EITHER', 'EXISTING'] as const) {
  const rejectsLost = (dataDir: string, message: RegExp, madeLater: readonly string[] = []) => {
    const digests = () =>
      readdirSync(dataDir).map((name) => [name, hash('sha256', readFileSync(join(dataDir, name)))]);
    const kept = digests();
    const open = () => createSqliteStore({ dataDir, ...sandbox, opening, madeLater });
    assert.throws(open, { name: 'DatabaseError', message });
    assert.deepEqual(digests(), kept);
  };

  test(`${opening}: nothing is created beside the log of a missing or empty database`, async (t) => {
    const inFolder = await leftOpen(t);
    const dataDir = inFolder('.');
    renameSync(inFolder('artseal.db'), inFolder('away'));
    rejectsLost(dataDir, /artseal\.db is missing, but artseal\.db-wal is there/);
    writeFileSync(inFolder('artseal.db'), '');
    rejectsLost(dataDir, /artseal\.db is empty, but artseal\.db-wal is there/);
    renameSync(inFolder('away'), inFolder('artseal.db'));
    const store = createSqliteStore({ dataDir, ...sandbox });
    assert.ok(
      await perform(store, { kind: 'FindPlatform', name: 'gallery' }),
      'a database whose content is in the log opens',
    );
    await store.close();
  });

  for (const name of ['serving.lock', 'made-later']) {
    test(`${opening}: no database is created beside ${name}, which is created after it`, (t) => {
      const dataDir = temporaryFolder(t);
      writeFileSync(join(dataDir, name), '');
      rejectsLost(dataDir, new RegExp(`artseal\\.db is missing, but ${name} is there`), ['made-later']);
      writeFileSync(join(dataDir, 'artseal.db'), '');
      rejectsLost(dataDir, new RegExp(`artseal\\.db is empty, but ${name} is there`), ['made-later']);
    });
  }
}

test('an interrupted creation is repeated, and a master key does not prevent that', async (t) => {
  const dataDir = temporaryFolder(t);
  const firstPage = readFileSync((await leftOpen(t))('artseal.db'));
  writeFileSync(join(dataDir, 'master-key'), 'main:');
  for (const content of [Buffer.alloc(0), firstPage]) {
    writeFileSync(join(dataDir, 'artseal.db'), content);
    if (content.length > 0) writeFileSync(join(dataDir, 'artseal.db-wal'), '');
    await createSqliteStore({ dataDir, ...sandbox, opening: 'NEW' }).close();
    assert.equal(existsSync(join(dataDir, 'artseal.db-wal')), false);
  }
});
