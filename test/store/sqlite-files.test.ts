import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DatabaseError } from '../../src/store/engine/failure.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { perform } from '../../src/store/store.ts';
import { apiError } from '../support/rejected.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { aroundCommit } from './commits.ts';
import { sqliteInThisThread } from './engines.ts';
import { addPlatform, filingPages, openStore, refused, sandbox, toFile } from './promises/fixtures.ts';

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

/** How files may be moved, and how that is undone. */
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
    // A short page, which fits into a batch with the write.
    const list = async () => (await filingPages(store, {}, 10)).flat().length;
    // Once the fault is known, and by the write itself, with and without a read in its batch.
    for (const [round, finds] of ['findFault', 'write', 'batch'].entries()) {
      const putBack = displace(movable);
      if (finds === 'findFault') assert.ok(store.findFault()?.includes(dataDir));
      if (finds === 'batch')
        await Promise.all([refused(list(), 'UNAVAILABLE'), refused(file(), 'UNAVAILABLE')]);
      await refused(file(), 'UNAVAILABLE');
      await refused(list(), 'UNAVAILABLE');
      putBack();
      assert.equal(store.findFault(), undefined);
      assert.equal(await file(), `AS-2026-00000${round + 2}`, 'the rejected write left nothing');
      assert.equal(await list(), round + 2);
    }
  });
}

test('a write whose files move during its commit has an unknown fate, and is found once they are back', async (t) => {
  const { store, dataDir, file } = await openMovable(t);
  aroundCommit(t, { after: () => renameSync(dataDir, `${dataDir}.away`) });
  await assert.rejects(
    file(),
    apiError(
      'UNAVAILABLE',
      /^It is not known whether this was stored; read it, or repeat the call with the same Idempotency-Key\.$/,
    ),
  );
  renameSync(`${dataDir}.away`, dataDir);
  assert.equal(store.findFault(), undefined);
  assert.equal((await filingPages(store)).flat().length, 2, 'it was stored');
  assert.equal(await file(), 'AS-2026-000003');
});

test('closing does not touch a database that replaced this one', async (t) => {
  const { store, dataDir, inFolder } = await openMovable(t);
  renameSync(dataDir, `${dataDir}.away`);
  const other = createSqliteStore({ dataDir, ...sandbox });
  await addPlatform(other, 'other');
  await store.close();
  assert.ok(existsSync(inFolder('artseal.db-wal')), 'the log of the other database is there');
  await other.close();
  const again = await openStore(t, sqliteInThisThread, dataDir);
  assert.ok(await perform(again, { kind: 'FindPlatform', name: 'other' }));
});

test('closing writes a log that was removed into the database', async (t) => {
  const { store, dataDir, inFolder } = await openMovable(t);
  rmSync(inFolder('artseal.db-wal'));
  assert.notEqual(store.findFault(), undefined);
  await store.close();
  const again = await openStore(t, sqliteInThisThread, dataDir);
  assert.equal((await filingPages(again)).flat().length, 1);
});

test('a database that has to exist is not created, nor is its folder', async (t) => {
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
  assert.throws(open, none, 'as an interrupted creation leaves it');
  assert.deepEqual(readdirSync(dataDir), ['artseal.db', 'artseal.lock']);
});

test('a database that has to be new is created once', async (t) => {
  const dataDir = join(temporaryFolder(t), 'data');
  const open = () => createSqliteStore({ dataDir, ...sandbox, opening: 'NEW' });
  await open().close();
  assert.throws(open, { name: 'DatabaseError', message: /artseal\.db is there already/ });
});
