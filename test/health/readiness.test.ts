import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { createReadiness, type ReadinessPart } from '../../src/health/readiness.ts';
import { createLog } from '../../src/lib/log.ts';
import { createManualClock } from '../support/clock.ts';

/** Readiness of two parts, what is wrong with each, and what was logged. */
function twoParts() {
  const faults: { [name: string]: string | Promise<string | undefined> | undefined } = {};
  const part = (name: string): ReadinessPart => ({ name, findFault: () => faults[name] });
  const logged: { level: number; msg: string; faults?: unknown }[] = [];
  const log = createLog({ write: (line) => logged.push(JSON.parse(line)) });
  const clock = createManualClock();
  const readiness = createReadiness([part('disk'), part('time')], clock, log);
  return { readiness, faults, logged, clock };
}

test('a check returns the fault of every part that fails, in the order of the parts', async () => {
  const { readiness, faults } = twoParts();
  assert.deepEqual(readiness.parts, ['disk', 'time']);
  assert.deepEqual(await readiness.check(), []);
  Object.assign(faults, { time: 'it is late', disk: Promise.resolve('it is full') });
  assert.deepEqual(await readiness.check(), [
    { part: 'disk', fault: 'it is full' },
    { part: 'time', fault: 'it is late' },
  ]);
});

test('a part whose check throws fails', async () => {
  const { readiness, faults } = twoParts();
  faults.disk = Promise.reject(new TypeError('no disk'));
  assert.deepEqual(await readiness.check(), [
    { part: 'disk', fault: 'it could not be checked: TypeError: no disk' },
  ]);
});

test('a change of the failing parts is logged and reported, another text of a fault is not', async () => {
  const { readiness, faults, logged } = twoParts();
  let changes = 0;
  const ignore = readiness.onChange(() => {
    changes += 1;
  });
  await readiness.check();
  assert.deepEqual([logged.length, changes], [0, 0]);
  faults.time = 'it is late by 1 s';
  await readiness.check();
  faults.time = 'it is late by 2 s';
  await readiness.check();
  assert.deepEqual([logged.length, changes], [1, 1]);
  assert.deepEqual(logged[0]?.faults, [{ part: 'time', fault: 'it is late by 1 s' }]);
  faults.disk = 'it is full';
  await readiness.check();
  ignore();
  Object.assign(faults, { disk: undefined, time: undefined });
  await readiness.check();
  assert.deepEqual(
    logged.map(({ level, msg }) => [level, msg]),
    [
      [40, 'not ready: time'],
      [40, 'not ready: disk, time'],
      [30, 'ready again'],
    ],
  );
  assert.equal(changes, 2);
});

test('the result of a slow check is dropped if a later check has ended', async () => {
  const { readiness, faults, logged } = twoParts();
  const slow = Promise.withResolvers<string | undefined>();
  faults.disk = slow.promise;
  const early = readiness.check();
  faults.disk = undefined;
  await readiness.check();
  slow.resolve('it was full');
  assert.deepEqual(await early, [{ part: 'disk', fault: 'it was full' }]);
  assert.deepEqual(logged, []);
});

test('readiness is checked every ten seconds, and every second while a part fails, until it is stopped', async () => {
  const { readiness, faults, logged, clock } = twoParts();
  await readiness.start();
  faults.disk = 'it is full';
  clock.advance(9_999);
  await turn();
  assert.equal(logged.length, 0);
  clock.advance(1);
  await turn();
  assert.equal(logged.length, 1);
  faults.disk = undefined;
  clock.advance(1_000);
  await turn();
  assert.equal(logged.length, 2);
  readiness.stop();
  faults.disk = 'it is full';
  clock.advance(60_000);
  await turn();
  assert.equal(logged.length, 2);
});
