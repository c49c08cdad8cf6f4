import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import Sqlite from 'better-sqlite3';
import { createTimers } from '../../src/payments/simulated/timers.ts';
import { createManualClock } from '../support/clock.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';

describe('timers of the simulated provider', () => {
  test('what the disk had no room for is tried again, and no other error is kept back', () => {
    const clock = createManualClock();
    const timers = createTimers(clock);
    let tries = 0;
    timers.after(10, () => {
      tries += 1;
      if (tries < 3) throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
    });
    clock.advance(10);
    assert.equal(tries, 1);
    clock.advance(10_000);
    assert.equal(tries, 3);
    assert.equal(clock.nextDueMs(), undefined);
    timers.after(10, () => {
      throw new Error('a mistake');
    });
    assert.throws(() => clock.advance(10), /a mistake/);
  });

  test('nothing happens after the end', () => {
    const clock = createManualClock();
    const timers = createTimers(clock);
    const unexpected = () => assert.fail('called back');
    const cancel = timers.after(10, unexpected);
    timers.end();
    assert.equal(clock.nextDueMs(), undefined);
    timers.now(unexpected);
    timers.after(10, unexpected);
    assert.equal(clock.nextDueMs(), undefined);
    cancel();
  });

  test('an open simulator with all kinds of work to do does not keep the process alive', (t) => {
    const module = (path: string) => JSON.stringify(join(import.meta.dirname, path));
    const simulated = module('../../src/payments/simulated/provider.ts');
    const program = `
      const { createSimulatedProvider } = await import(${simulated});
      const { systemClock } = await import(${module('../../src/operations/registry.ts')});
      const { instruction, order, never } = await import(${module('simulated-support.ts')});
      const provider = createSimulatedProvider({
        dataDir: process.argv[1], clock: systemClock, deliver: () => Promise.reject(new Error('not there')),
      });
      for (const buyerId of ['buyer', 'sim-slow', 'sim-silent', 'sim-lapse', 'sim-duplicate']) {
        void provider.instruct(instruction('FREEZE', order(buyerId, { buyerId })), never);
      }`;
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--input-type=module', '--eval', program, temporaryFolder(t)],
      { timeout: 300_000, encoding: 'utf8' },
    );
    assert.equal(status, 0, stderr);
  });
});
