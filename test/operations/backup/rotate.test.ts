import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { type RotationOrder, rotateBackups } from '../../../src/operations/backup/rotate.ts';
import { readBackupStatus } from '../../../src/operations/backup/standing.ts';
import { forgeIn } from '../../support/forging.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';
import { newRegistry, noon, unwatched } from './folder.ts';

const hourMs = 3_600_000;
const hugeNumber = `artseal-${'9'.repeat(21)}-20200101T000000Z.tar`;
const nameAt = (sequence: number, time: string) => `artseal-00000${sequence}-${time}.tar`;

/** Rotates the backups of a registry in a new folder. */
async function rotation(t: Parameters<typeof newRegistry>[0]) {
  const { dataDir, file } = await newRegistry(t);
  const folder = temporaryFolder(t);
  const rotate = (nowMs: number, over: Partial<RotationOrder> = {}) =>
    rotateBackups({ dataDir, folder, keep: 3, everyMs: undefined, nowMs, progress: unwatched, ...over });
  return { dataDir, file, folder, rotate, names: () => readdirSync(folder).sort() };
}

test('a rotation keeps the newest backups, removes the oldest, and leaves other files', async (t) => {
  const { folder, rotate, names } = await rotation(t);
  const others = ['artseal-1-20200101T000000Z.tar', hugeNumber, 'artseal.db', 'notes.tar', 'zz'];
  for (const name of others) writeFileSync(join(folder, name), 'mine');
  for (const hour of [0, 1, 2, 3, 4]) await rotate(noon.atMs + hour * hourMs);
  const kept = [nameAt(3, '20261121T140000Z'), nameAt(4, '20261121T150000Z'), nameAt(5, '20261121T160000Z')];
  assert.deepEqual(names(), [...kept, ...others].sort());
});

test('no backup is taken while the last one is young enough', async (t) => {
  const { rotate, names } = await rotation(t);
  const everyMs = 24 * hourMs;
  assert.equal((await rotate(noon.atMs, { everyMs })).isNew, true);
  const young = await rotate(noon.atMs + everyMs - 1, { everyMs });
  assert.partialDeepStrictEqual(young, { isNew: false, takenAt: '2026-11-21T12:00:00.000Z', removed: [] });
  assert.equal(names().length, 1);
  assert.equal((await rotate(noon.atMs + everyMs, { everyMs })).isNew, true);
});

test('a young backup that is not the last verified one does not count', async (t) => {
  const { dataDir, folder, rotate, names } = await rotation(t);
  const everyMs = 24 * hourMs;
  await rotate(noon.atMs);
  // As an earlier version left it, and as a person puts a file there.
  rmSync(join(dataDir, 'backup-status.json'));
  assert.equal((await rotate(noon.atMs + hourMs, { everyMs })).isNew, true);
  const [, second = ''] = names();
  copyFileSync(join(folder, second), join(folder, nameAt(3, '20261121T130000Z')));
  assert.equal((await rotate(noon.atMs + 2 * hourMs, { everyMs })).isNew, true);
  const verified = join(folder, nameAt(4, '20261121T140000Z'));
  assert.equal((await readBackupStatus(dataDir))?.last?.file, verified);
  assert.equal((await rotate(noon.atMs + 3 * hourMs, { everyMs })).isNew, false);
});

test('only the oldest backup is removed, even if the clock jumps', async (t) => {
  const { rotate, names } = await rotation(t);
  const everyMs = 24 * hourMs;
  await rotate(noon.atMs, { everyMs });
  await rotate(Date.parse('2036-01-01T00:00:00Z'), { everyMs });
  assert.equal(names().length, 2);
  // That of 2036 is no reason to take none until then.
  assert.equal((await rotate(noon.atMs + hourMs, { everyMs })).isNew, true);
  assert.equal((await rotate(noon.atMs + 2 * hourMs, { everyMs })).isNew, false);
  await rotate(noon.atMs + 30 * hourMs, { everyMs });
  assert.deepEqual(names(), [
    nameAt(2, '20360101T000000Z'),
    nameAt(3, '20261121T130000Z'),
    nameAt(4, '20261122T180000Z'),
  ]);
});

test('incomplete backups are reported and left, and do not count; the only complete one stays', async (t) => {
  const { folder, rotate, names } = await rotation(t);
  for (const hour of [0, 1, 2]) await rotate(noon.atMs + hour * hourMs);
  const [first = '', second = '', third = ''] = names();
  truncateSync(join(folder, second), 5_000);
  writeFileSync(join(folder, third), '');
  const { removed, broken, file } = await rotate(noon.atMs + 3 * hourMs, { keep: 2 });
  assert.deepEqual([removed, broken], [[], [second, third]]);
  assert.equal(file, join(folder, nameAt(4, '20261121T150000Z')));
  assert.deepEqual((await rotate(noon.atMs + 4 * hourMs, { keep: 1 })).removed, [
    first,
    nameAt(4, '20261121T150000Z'),
  ]);
  assert.deepEqual(names(), [second, third, nameAt(5, '20261121T160000Z')]);
});

test('a failed backup removes no other', async (t) => {
  const { rotate, names, dataDir } = await rotation(t);
  for (const hour of [0, 1, 2]) await rotate(noon.atMs + hour * hourMs);
  const kept = names();
  const failing = rotate(noon.atMs + 3 * hourMs, { dataDir: join(dataDir, 'none'), keep: 1 });
  await assert.rejects(failing, /there is no database/);
  await assert.rejects(rotate(noon.atMs + 3 * hourMs, { freeBytesOf: () => 0, keep: 1 }), /make room/);
  const folder = join(dataDir, 'none');
  await assert.rejects(rotate(noon.atMs + 3 * hourMs, { folder }), /ENOENT/);
  const { failure } = (await readBackupStatus(dataDir)) ?? {};
  assert.equal(failure?.reason, `${folder} does not exist: check the path`);
  assert.deepEqual(names(), kept);
});

test('unfinished files of a killed run are removed, and no similar files', async (t) => {
  const { folder, rotate, names } = await rotation(t);
  mkdirSync(join(folder, `${nameAt(7, '20261121T120000Z')}.partial-abcdef`));
  writeFileSync(join(folder, `${nameAt(8, '20261121T120000Z')}.partial-unverified`), '');
  mkdirSync(join(folder, 'mine.tar.partial-abcdef'));
  await rotate(noon.atMs);
  assert.deepEqual(names(), [nameAt(1, '20261121T120000Z'), 'mine.tar.partial-abcdef']);
});

test('a damaged backup is kept aside and removes no other, until one is sound', async (t) => {
  const { folder, rotate, names, dataDir, file } = await rotation(t);
  const filingNo = await file();
  for (const hour of [0, 1]) await rotate(noon.atMs + hour * hourMs, { keep: 2 });
  const kept = names();
  const database = join(dataDir, 'artseal.db');
  const authorAs = (author: string) =>
    forgeIn(database, (client) => client.prepare('UPDATE filing SET author = ?').run(author));
  const author = forgeIn(database, (client) => client.prepare('SELECT author FROM filing').pluck().get());
  authorAs('Zhang Daqian');
  const damaged = join(folder, 'artseal.tar.damaged');
  const everyMs = 24 * hourMs;
  // The last one is young, but the last try failed: it is tried again, and the damaged one is replaced.
  for (const [hour, over] of [
    [2, { keep: 1 }],
    [3, { keep: 1, everyMs }],
  ] as const) {
    await assert.rejects(rotate(noon.atMs + hour * hourMs, over), ({ message }: Error) => {
      assert.ok(message.includes(filingNo) && message.includes(damaged), message);
      return true;
    });
    assert.deepEqual(names(), [...kept, 'artseal.tar.damaged'].sort());
    assert.deepEqual((await readBackupStatus(dataDir))?.last, {
      file: join(folder, kept.at(-1) ?? ''),
      takenAt: '2026-11-21T13:00:00.000Z',
    });
    assert.match((await readBackupStatus(dataDir))?.failure?.reason ?? '', new RegExp(filingNo));
  }
  authorAs(String(author));
  const { isNew, removed } = await rotate(noon.atMs + 4 * hourMs, { keep: 1, everyMs });
  assert.deepEqual([isNew, removed], [true, kept]);
  assert.deepEqual(names(), [nameAt(3, '20261121T160000Z'), 'artseal.tar.damaged']);
  assert.partialDeepStrictEqual(await readBackupStatus(dataDir), {
    last: { takenAt: '2026-11-21T16:00:00.000Z' },
    failure: undefined,
  });
});
