import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { DatabaseError } from '../../src/store/sqlite/location.ts';
import { perform } from '../../src/store/store.ts';
import { apiError } from '../support/rejected.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { addPlatform, anyFiling, painting, refused, sandbox, toFile } from './promises/fixtures.ts';

const firstPage = { from: undefined, size: 10 };

/** A store with a platform and one filing, in a folder that can be moved. */
async function openMovable(t: TestContext) {
  const dataDir = join(temporaryFolder(t), 'data');
  const store = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => store.close());
  const by = await addPlatform(store, 'gallery');
  const file = async () => (await perform(store, toFile(by))).filingNo;
  assert.equal(await file(), 'AS-2026-000001');
  return { store, dataDir, file, inFolder: (name: string) => join(dataDir, name) };
}

type Movable = Awaited<ReturnType<typeof openMovable>>;

const databaseFiles = ['artseal.db', 'artseal.db-wal', 'artseal.db-shm'];

/** What may be done to the files, and how it is undone. */
const displacements: Record<string, (movable: Movable) => () => void> = {
  'the folder is moved': ({ dataDir }) => {
    renameSync(dataDir, `${dataDir}.away`);
    return () => renameSync(`${dataDir}.away`, dataDir);
  },
};
for (const name of databaseFiles) {
  displacements[`${name} is moved`] = ({ inFolder }) => {
    renameSync(inFolder(name), inFolder('away'));
    return () => renameSync(inFolder('away'), inFolder(name));
  };
  displacements[`${name} is replaced by a copy`] = ({ inFolder }) => {
    copyFileSync(inFolder(name), inFolder('copy'));
    renameSync(inFolder(name), inFolder('away'));
    renameSync(inFolder('copy'), inFolder(name));
    return () => renameSync(inFolder('away'), inFolder(name));
  };
}

for (const [what, displace] of Object.entries(displacements)) {
  test(`${what}: nothing is written or read until it is back`, async (t) => {
    const movable = await openMovable(t);
    const { store, dataDir, file } = movable;
    assert.equal(store.findFault(), undefined);
    const putBack = displace(movable);
    const why = store.findFault() ?? '';
    assert.ok(why.includes(dataDir), why);
    await refused(file(), 'UNAVAILABLE');
    await refused(perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage }), 'UNAVAILABLE');
    putBack();
    assert.equal(store.findFault(), undefined);
    assert.equal(await file(), 'AS-2026-000002', 'the write that was refused left nothing');
    assert.equal(
      (await perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage })).items.length,
      2,
    );
  });

  test(`${what}: what is read beside the write that finds out is refused as well`, async (t) => {
    const movable = await openMovable(t);
    const { store, file } = movable;
    const putBack = displace(movable);
    const read = perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage });
    await Promise.all([refused(file(), 'UNAVAILABLE'), refused(read, 'UNAVAILABLE')]);
    putBack();
    assert.equal(store.findFault(), undefined);
    assert.equal(await file(), 'AS-2026-000002');
  });

  test(`${what}: a write finds out by itself, and leaves nothing`, async (t) => {
    const movable = await openMovable(t);
    const { store, file } = movable;
    const putBack = displace(movable);
    await refused(file(), 'UNAVAILABLE');
    await refused(perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage }), 'UNAVAILABLE');
    putBack();
    assert.equal(store.findFault(), undefined);
    assert.equal(await file(), 'AS-2026-000002');
  });
}

test('a write whose files go while it is committed is not said to be stored or not, and is found later', async (t) => {
  const { prepare } = Sqlite.prototype;
  let afterCommit = () => {};
  const opening = t.mock.method(Sqlite.prototype, 'prepare', function (this: Sqlite.Database, sql: string) {
    const statement: Sqlite.Statement = prepare.call(this, sql);
    const run = statement.run.bind(statement);
    if (sql !== 'COMMIT') return statement;
    statement.run = () => {
      const result = run();
      afterCommit();
      return result;
    };
    return statement;
  } as typeof prepare);
  const { store, dataDir, file } = await openMovable(t);
  opening.mock.restore();
  afterCommit = () => renameSync(dataDir, `${dataDir}.away`);
  await assert.rejects(
    file(),
    apiError(
      'UNAVAILABLE',
      /^It is not known whether this was stored; read it, or repeat the call with the same Idempotency-Key\.$/,
    ),
  );
  afterCommit = () => {};
  renameSync(`${dataDir}.away`, dataDir);
  assert.equal(store.findFault(), undefined);
  assert.equal(
    (await perform(store, { kind: 'ListFilings', filter: anyFiling, page: firstPage })).items.length,
    2,
    'it was stored',
  );
  assert.equal(await file(), 'AS-2026-000003');
});

test('closing leaves alone what was put in the place of the database', async (t) => {
  const { store, dataDir, inFolder } = await openMovable(t);
  renameSync(dataDir, `${dataDir}.away`);
  const other = createSqliteStore({ dataDir, ...sandbox });
  await addPlatform(other, 'other');
  await store.close();
  assert.ok(existsSync(inFolder('artseal.db-wal')), 'the log of the other one is there');
  await other.close();
  const again = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => again.close());
  assert.ok(await perform(again, { kind: 'FindPlatform', name: 'other' }));
});

test('what is in a log that was removed is in the database after closing', async (t) => {
  const { store, dataDir, inFolder } = await openMovable(t);
  rmSync(inFolder('artseal.db-wal'));
  assert.notEqual(store.findFault(), undefined);
  await store.close();
  const again = createSqliteStore({ dataDir, ...sandbox });
  t.after(() => again.close());
  assert.equal(
    (await perform(again, { kind: 'ListFilings', filter: anyFiling, page: firstPage })).items.length,
    1,
  );
});

test('a database that has to be there is not made, nor is its folder', async (t) => {
  const folder = temporaryFolder(t);
  const dataDir = join(folder, 'data');
  const open = () => createSqliteStore({ dataDir, ...sandbox, opening: 'EXISTING' });
  const none = (error: unknown) => {
    assert.ok(error instanceof DatabaseError, String(error));
    assert.match(error.message, /there is no database in .*artseal init/);
    return true;
  };
  assert.throws(open, none);
  assert.deepEqual(readdirSync(folder), []);
  await createSqliteStore({ dataDir, ...sandbox }).close();
  await open().close();

  rmSync(join(dataDir, 'artseal.db'));
  assert.throws(open, none);
  writeFileSync(join(dataDir, 'artseal.db'), '');
  assert.throws(open, none, 'as a creation leaves it that was cut off');
  assert.deepEqual(readdirSync(dataDir), ['artseal.db']);
});

test('a database that has to be new is made once', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const open = () => createSqliteStore({ dataDir, ...sandbox, opening: 'NEW' });
  const first = open();
  t.after(() => first.close());
  assert.throws(open, { name: 'DatabaseError', message: /artseal\.db is there already/ });
});

test('a log that a long reader let grow is cut back once the reader is gone', async (t) => {
  const { store, inFolder } = await openMovable(t);
  const by = await addPlatform(store, 'another gallery');
  const artwork = { ...painting, condition: '\u8272'.repeat(2_000) };
  const file = () =>
    Promise.all(Array.from({ length: 1_000 }, () => perform(store, { ...toFile(by), artwork })));
  const logBytes = async () => (await store.metrics()).files?.logBytes ?? Number.NaN;
  const reader = new Sqlite(inFolder('artseal.db'), { readonly: true });
  t.after(() => reader.close());
  reader.exec('BEGIN; SELECT count(*) FROM filing');
  for (let batch = 0; batch < 7; batch += 1) await file();
  assert.ok((await logBytes()) > 40_000_000, `${await logBytes()}`);
  reader.exec('COMMIT');
  // One folds all of the log into the database, the next one writes it from its beginning.
  for (let batch = 0; batch < 2; batch += 1) await file();
  assert.ok((await logBytes()) <= 33_554_432, `${await logBytes()}`);
});
