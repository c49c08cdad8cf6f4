import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { createLog } from '../../../src/lib/log.ts';
import {
  type BackupStatus,
  watchBackups,
  writeBackupStatus,
} from '../../../src/operations/backup/standing.ts';
import { createManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';
import { temporaryFolder } from '../../support/temporary-folder.ts';

const hourMs = 3_600_000;
const everyMs = 24 * hourMs;

/** A watch over a data folder, and a function that writes the result of a command there. */
function watched(t: TestContext, over: { folder?: string; isRequired?: boolean } = {}) {
  const clock = createManualClock();
  const dataDir = temporaryFolder(t);
  writeFileSync(join(dataDir, 'artseal.db'), '');
  const file = join(temporaryFolder(t), 'b.tar');
  writeFileSync(file, '');
  const lines: { level: number; reason?: string; msg: string }[] = [];
  const log = createLog({ write: (line) => lines.push(JSON.parse(line)) });
  const terms = { dataDir, folder: undefined, everyMs, isRequired: false, ...over };
  const watch = watchBackups(terms, clock, log);
  t.after(watch.stop);
  const last = () => ({ file, takenAt: new Date(clock.nowMs()).toISOString() });
  return {
    ...{ watch, clock, last, file, lines },
    leave: (status: BackupStatus) => writeBackupStatus(dataDir, status),
    /** Waits until the watch has read the status again. */
    look: async () => {
      await eventually('the next look is due', 60_000, () => clock.nextDueMs() !== undefined);
      clock.advance(10_000);
      await eventually('the look after it is due', 60_000, () => clock.nextDueMs() !== undefined);
    },
    logged: () => lines.map(({ level, msg, reason = '' }) => `${level} ${msg} ${reason}`.trim()),
  };
}

test('each failed attempt of a command is logged once as an error, until one succeeds', async (t) => {
  const { watch, leave, look, last, logged } = watched(t, { isRequired: true });
  const good = last();
  leave({ last: good, failure: undefined });
  await look();
  assert.deepEqual(watch.standing(), { last: good, failure: undefined });
  for (const at of ['2026-11-22T03:10:00.000Z', '2026-11-23T03:10:00.000Z']) {
    leave({ last: good, failure: { at, reason: 'the disk is full.' } });
    await look();
    await look();
    assert.equal(logged().at(-1), `50 backups are not in order the backup of ${at} failed: the disk is full`);
  }
  leave({ last: good, failure: undefined });
  await look();
  assert.equal(logged().at(-1), '30 backups are in order again');
  assert.equal(logged().filter((line) => line.includes(' failed: ')).length, 2);
});

test('a sandbox needs no backups, and logs a failed one as a warning', async (t) => {
  const { watch, leave, look, logged } = watched(t);
  await look();
  assert.deepEqual([watch.standing(), logged()], [undefined, []]);
  leave({ last: undefined, failure: { at: '2026-11-22T03:10:00.000Z', reason: 'no room' } });
  await look();
  assert.match(logged().join(), /^40 backups are not in order .* failed: no room$/);
});

test('a backup older than two periods is logged as an error, a removed one as a warning', async (t) => {
  const { watch, clock, leave, look, last, file, logged } = watched(t, { isRequired: true });
  await look();
  leave({ last: last(), failure: undefined });
  clock.advance(2 * everyMs - hourMs);
  await look();
  assert.equal(logged().at(-1), '30 backups are in order again');
  clock.advance(2 * hourMs);
  await look();
  assert.match(
    logged().at(-1) ?? '',
    /^50 backups are not in order .* more than twice ARTSEAL_BACKUP_EVERY ago/,
  );
  leave({ last: last(), failure: undefined });
  for (const gone of [file, dirname(file)]) {
    rmSync(gone, { recursive: true });
    await look();
    assert.match(
      logged().at(-1) ?? '',
      /^40 backups are not in order .*b\.tar, does not exist any more: mount/,
    );
    assert.match(watch.standing()?.failure ?? '', /b\.tar, does not exist any more/);
  }
});

test('a production without backups is logged as a warning', async (t) => {
  const { watch, look, logged } = watched(t, { isRequired: true });
  await look();
  assert.deepEqual(watch.standing(), { last: undefined, failure: undefined });
  assert.match(
    logged().join(),
    /^40 backups are not in order no verified backup is known: set ARTSEAL_BACKUP_DIR/,
  );
});

test('a missing backup folder of the server is an error; the watch leaves failures of the schedule to the schedule', async (t) => {
  const folder = temporaryFolder(t);
  const { watch, leave, look, last, logged } = watched(t, { folder });
  leave({ last: last(), failure: { at: '2026-11-22T03:10:00.000Z', reason: 'no room' } });
  await look();
  assert.deepEqual(logged(), []);
  assert.match(watch.standing()?.failure ?? '', /no room$/);
  rmSync(folder, { recursive: true });
  leave({ last: last(), failure: undefined });
  await look();
  assert.match(logged().join(), /^50 backups are not in order .*: \/\S+ does not exist: .*mount its disk$/);
  assert.match(watch.standing()?.failure ?? '', /does not exist/);
});
