import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createLog } from '../../../src/lib/log.ts';
import type { Rotated } from '../../../src/operations/backup/rotate.ts';
import { startBackups } from '../../../src/operations/backup/schedule.ts';
import { createManualClock, type ManualClock } from '../../support/clock.ts';
import { eventually } from '../../support/eventually.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

/** A schedule over a simulated folder, whose last backup is `lastAgeMs` old. */
function played(clock: ManualClock, everyMs: number, lastAgeMs: number) {
  let takenAtMs = clock.nowMs() - lastAgeMs;
  let attempts = 0;
  let lastsMs = 0;
  let failure: Error | undefined;
  const lines: string[] = [];
  const log = createLog({ write: (line) => lines.push(line) });
  const takeIfOld = async (): Promise<Rotated> => {
    attempts += 1;
    await turn();
    clock.advance(lastsMs);
    if (failure !== undefined) throw failure;
    const ageMs = clock.nowMs() - takenAtMs;
    const isNew = ageMs < 0 || ageMs >= everyMs;
    if (isNew) takenAtMs = clock.nowMs();
    return { file: 'b.tar', takenAt: new Date(takenAtMs).toISOString(), isNew, removed: [], broken: [] };
  };
  const schedule = startBackups(takeIfOld, everyMs, clock, log);
  return {
    ...schedule,
    lines,
    lasting: (ms: number) => {
      lastsMs = ms;
    },
    fail: (error: Error | undefined) => {
      failure = error;
    },
    /** Waits for so many attempts. Returns the milliseconds until the next one. */
    nextAfter: (times: number) =>
      eventually('the next backup', minuteMs, () => (attempts === times ? clock.nextDueMs() : false)),
  };
}

test('a missed backup is taken at the start, and then one each period', async () => {
  const clock = createManualClock();
  const backups = played(clock, dayMs, 3 * dayMs);
  assert.equal(await backups.nextAfter(1), dayMs);
  clock.advance(dayMs);
  assert.equal(await backups.nextAfter(2), dayMs);
  await backups.stop();
  assert.equal(clock.nextDueMs(), undefined);
});

test('after a restart the schedule waits for the rest of the period', async () => {
  const clock = createManualClock();
  const backups = played(clock, dayMs, dayMs - 5 * minuteMs);
  assert.equal(await backups.nextAfter(1), 5 * minuteMs);
  clock.advance(5 * minuteMs);
  assert.equal(await backups.nextAfter(2), dayMs);
  await backups.stop();
});

test('setting the clock neither makes more backups nor stops them', async () => {
  const clock = createManualClock();
  const backups = played(clock, dayMs, 0);
  assert.equal(await backups.nextAfter(1), dayMs);
  clock.setWall(clock.nowMs() + 3_650 * dayMs);
  assert.equal(clock.nextDueMs(), dayMs);
  clock.advance(dayMs);
  assert.equal(await backups.nextAfter(2), dayMs);
  clock.setWall(clock.nowMs() - 3_650 * dayMs);
  clock.advance(dayMs);
  assert.equal(await backups.nextAfter(3), dayMs);
  await backups.stop();
});

test('a failure is logged and returned, and the attempt is repeated until it succeeds', async () => {
  const clock = createManualClock();
  const backups = played(clock, dayMs, 0);
  await backups.nextAfter(1);
  backups.fail(new Error('the disk is gone'));
  clock.advance(dayMs);
  assert.equal(await backups.nextAfter(2), 15 * minuteMs);
  assert.equal(backups.failure(), 'the disk is gone');
  const last = JSON.parse(backups.lines.at(-1) ?? '');
  assert.deepEqual([last.level, last.reason], [50, 'the disk is gone']);
  backups.fail(undefined);
  clock.advance(15 * minuteMs);
  await backups.nextAfter(3);
  assert.equal(backups.failure(), undefined);
  await backups.stop();
});

test('the next attempt is counted from the end of one that takes long', async () => {
  const clock = createManualClock();
  const backups = played(clock, dayMs, 3 * dayMs);
  backups.lasting(20 * minuteMs);
  assert.equal(await backups.nextAfter(1), dayMs);
  backups.fail(new Error('the disk is full'));
  clock.advance(dayMs);
  assert.equal(await backups.nextAfter(2), 15 * minuteMs);
  await backups.stop();
});
