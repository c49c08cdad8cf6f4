import assert from 'node:assert/strict';
import { renameSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createStorePart } from '../../src/readiness/store-part.ts';
import { createSqliteStore } from '../../src/store/sqlite/engine.ts';
import type { Store } from '../../src/store/store.ts';
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

test('however many ask, there is one write a second', async (t) => {
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

test('a disk that takes nothing is told a second later at the latest, and so is one that takes writes again', async (t) => {
  const { clock, part, disk } = await openPart(t);
  assert.equal(await part.findFault(), undefined);
  disk.failCommits();
  clock.advance(1_000);
  assert.equal(await part.findFault(), 'a write was refused: disk I/O error');
  disk.heal();
  clock.advance(1_000);
  assert.equal(await part.findFault(), undefined);
});

test('files that are not in their place are told at once', async (t) => {
  const { dataDir, part } = await openPart(t);
  assert.equal(await part.findFault(), undefined);
  renameSync(dataDir, `${dataDir}.away`);
  assert.equal(await part.findFault(), `${join(dataDir, 'artseal.db')} is gone`);
  renameSync(`${dataDir}.away`, dataDir);
  assert.equal(await part.findFault(), undefined);
});

test('a write that takes longer than a second is a fault until it is stored, and no more are begun', async (t) => {
  const { clock, store, logBytes } = await openPart(t);
  const stuck = Promise.withResolvers<void>();
  const execute: Store['execute'] = async (unit) => {
    await stuck.promise;
    return store.execute(unit);
  };
  const part = createStorePart({ execute, findFault: store.findFault }, clock);
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
