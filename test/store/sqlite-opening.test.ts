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
import { perform } from '../../src/store/store.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, sandbox } from './promises/fixtures.ts';
import { openRaw } from './raw-database.ts';

const bound = [
  ['environment', 'sandbox', ['production'], /sandbox deployment .* production.*ARTSEAL_ENVIRONMENT/],
  ['environment', 'production', ['sandbox'], /production deployment .* sandbox.*ARTSEAL_ENVIRONMENT/],
  ['currency', 'CNY', ['USD', 'cny', ''], /artseal\.db.* in CNY .*ARTSEAL_CURRENCY.*ARTSEAL_DATA_DIR/],
  ['currency', 'JPY', ['CNY'], /artseal\.db.* in JPY .*ARTSEAL_CURRENCY.*ARTSEAL_DATA_DIR/],
] as const;

for (const [member, made, others, message] of bound) {
  test(`a database of the ${member} ${made} does not open in another, and does not change`, async (t) => {
    const dataDir = temporaryFolder(t);
    const open = (as: string) => createSqliteStore({ dataDir, ...sandbox, [member]: as });
    await open(made).close();
    for (const other of others) assert.throws(() => open(other), { name: 'DatabaseError', message });
    const raw = openRaw(t, dataDir);
    assert.equal(raw.prepare(`SELECT ${member} FROM deployment`).pluck().get(), made);
    await open(made).close();
  });
}

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
      readdirSync(dataDir)
        .filter((name) => name !== 'artseal.lock-journal')
        .map((name) => [name, hash('sha256', readFileSync(join(dataDir, name)))]);
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

  test(`${opening}: no database is created beside a file that is created after it`, (t) => {
    const dataDir = temporaryFolder(t);
    writeFileSync(join(dataDir, 'made-later'), '');
    rejectsLost(dataDir, /artseal\.db is missing, but made-later is there/, ['made-later']);
    writeFileSync(join(dataDir, 'artseal.db'), '');
    rejectsLost(dataDir, /artseal\.db is empty, but made-later is there/, ['made-later']);
  });
}

test('an interrupted creation is repeated, and a master key or a lock does not prevent that', async (t) => {
  const dataDir = temporaryFolder(t);
  const firstPage = readFileSync((await leftOpen(t))('artseal.db'));
  for (const name of ['master-key', 'artseal.lock']) writeFileSync(join(dataDir, name), '');
  await createSqliteStore({ dataDir, ...sandbox, opening: 'NEW' }).close();
  for (const content of [Buffer.alloc(0), firstPage]) {
    writeFileSync(join(dataDir, 'artseal.db'), content);
    if (content.length > 0) writeFileSync(join(dataDir, 'artseal.db-wal'), '');
    await createSqliteStore({ dataDir, ...sandbox, opening: 'NEW' }).close();
    assert.equal(existsSync(join(dataDir, 'artseal.db-wal')), false);
  }
});
