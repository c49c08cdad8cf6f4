import assert from 'node:assert/strict';
import { renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createStorePart } from '../../src/health/store-part.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import { perform, type Store } from '../../src/store/store.ts';
import { sandbox } from '../store/promises/fixtures.ts';
import { onBadDisk } from '../support/bad-disk.ts';
import { createManualClock } from '../support/clock.ts';
import { eventually } from '../support/eventually.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

/** Bytes of a write in the log: a page and its header. */
const writeBytes = 4_096 + 24;
const late = 'a write takes longer than 1 s';

async function openPart(t: TestContext) {
  const dataDir = join(temporaryFolder(t), 'data');
  const clock = createManualClock();
  const [store, disk] = await onBadDisk(t, async () => createSqliteStore({ dataDir, ...sandbox }));
  t.after(() => store.close());
  const logBytes = () => statSync(join(dataDir, 'artseal.db-wal')).size;
  return { dataDir, clock, store, disk, logBytes, part: createStorePart(store, clock) };
}

test('checks cause at most one write a second', async (t) => {
  const { clock, part, logBytes } = await openPart(t);
  const before = logBytes();
  const written = () => (logBytes() - before) / writeBytes;
  assert.equal(written(), 0, 'nothing is written unasked');
  const asked = Array.from({ length: 1_000 }, () => part.findFault());
  for (const fault of await Promise.all(asked)) assert.equal(fault, undefined);
  assert.equal(written(), 1);
  clock.advance(999);
  await part.findFault();
  assert.equal(written(), 1);
  clock.advance(1);
  await part.findFault();
  assert.equal(written(), 2);
});

const refusedWrite = 'a write failed: disk I/O error';

test('a full disk is a fault within a second, until writes have succeeded for five', async (t) => {
  const { clock, part, disk } = await openPart(t);
  assert.equal(await part.findFault(), undefined);
  disk.failCommits();
  clock.advance(1_000);
  assert.equal(await part.findFault(), refusedWrite);
  disk.heal();
  for (let second = 1; second <= 5; second += 1) {
    clock.advance(1_000);
    assert.equal(await part.findFault(), refusedWrite);
  }
  clock.advance(1_000);
  assert.equal(await part.findFault(), undefined);
});

test('a failed write of a call is a fault at once, and restarts the five seconds', async (t) => {
  const { store, clock, part, disk } = await openPart(t);
  const refuseOne = async () => {
    disk.failCommits(0, 1);
    await assert.rejects(perform(store, { kind: 'RecordServing', atS: 1 }), { reason: 'UNAVAILABLE' });
    disk.heal();
  };
  assert.equal(await part.findFault(), undefined);
  await refuseOne();
  assert.equal(await part.findFault(), refusedWrite, 'although the last look found nothing');
  for (let second = 1; second <= 5; second += 1) {
    clock.advance(1_000);
    assert.equal(await part.findFault(), refusedWrite);
  }
  await refuseOne();
  for (let second = 1; second <= 6; second += 1) {
    assert.equal(await part.findFault(), refusedWrite);
    clock.advance(1_000);
  }
  assert.equal(await part.findFault(), undefined);
});

test('the part fails while another process holds the store, and works again right after', async (t) => {
  const { dataDir, clock, part } = await openPart(t);
  const other = new Sqlite(join(dataDir, 'artseal.db'));
  t.after(() => other.close());
  other.exec('BEGIN IMMEDIATE');
  assert.equal(await part.findFault(), 'a write failed: database is locked');
  other.exec('ROLLBACK');
  clock.advance(1_000);
  assert.equal(await part.findFault(), undefined);
});

test('after a failed write the disk needs room for more than the test write', async (t) => {
  const { store, clock, disk } = await openPart(t);
  let freeBytes = 1_048_575;
  const metrics: Store['metrics'] = async () => {
    const metrics = await store.metrics();
    return { ...metrics, files: metrics.files && { ...metrics.files, freeBytes } };
  };
  const part = createStorePart({ ...store, metrics }, clock);
  assert.equal(await part.findFault(), undefined, 'as long as nothing was refused');
  disk.failCommits(0, 1);
  clock.advance(1_000);
  assert.equal(await part.findFault(), refusedWrite);
  for (let second = 1; second <= 10; second += 1) {
    clock.advance(1_000);
    assert.equal(await part.findFault(), 'a write failed: the disk has 1048575 bytes left');
  }
  freeBytes += 1;
  for (let second = 1; second <= 5; second += 1) {
    clock.advance(1_000);
    assert.equal(await part.findFault(), refusedWrite);
  }
  clock.advance(1_000);
  assert.equal(await part.findFault(), undefined);
});

test('moved files are a fault at once', async (t) => {
  const { dataDir, part } = await openPart(t);
  assert.equal(await part.findFault(), undefined);
  renameSync(dataDir, `${dataDir}.away`);
  assert.equal(await part.findFault(), `${join(dataDir, 'artseal.db')} is gone`);
  renameSync(`${dataDir}.away`, dataDir);
  assert.equal(await part.findFault(), undefined);
});

test('a write that takes over a second is a fault until it is stored, and no other write begins', async (t) => {
  const { clock, store, logBytes } = await openPart(t);
  const stuck = Promise.withResolvers<void>();
  const execute: Store['execute'] = async (unit) => {
    await stuck.promise;
    return store.execute(unit);
  };
  const part = createStorePart({ ...store, execute }, clock);
  const before = logBytes();
  const first = part.findFault();
  clock.advance(1_000);
  assert.equal(await first, late);
  for (let second = 0; second < 10; second += 1) {
    clock.advance(1_000);
    assert.equal(await part.findFault(), late);
  }
  assert.equal(logBytes(), before);
  stuck.resolve();
  await eventually('the store takes writes', 60_000, async () => (await part.findFault()) === undefined);
  assert.ok(
    (logBytes() - before) / writeBytes <= 2,
    'the one that was stuck, and the one that shows that it is over',
  );
});
