import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import pino from 'pino';
import { createReadiness, type ReadinessPart } from '../../src/health/readiness.ts';
import { createManualClock } from '../support/clock.ts';

/** Readiness of two parts, what is wrong with each, and what was logged. */
function twoParts() {
  const faults: { [name: string]: string | Promise<string | undefined> | undefined } = {};
  const part = (name: string): ReadinessPart => ({ name, findFault: () => faults[name] });
  const logged: { level: number; msg: string; faults?: unknown }[] = [];
  const log = pino({ base: null }, { write: (line) => logged.push(JSON.parse(line)) });
  const clock = createManualClock();
  const readiness = createReadiness([part('disk'), part('time')], clock, log);
  return { readiness, faults, logged, clock };
}

test('it tells every part that fails, in words and in the order of the parts', async () => {
  const { readiness, faults } = twoParts();
  assert.deepEqual(readiness.parts, ['disk', 'time']);
  assert.deepEqual(await readiness.check(), []);
  Object.assign(faults, { time: 'it is late', disk: Promise.resolve('it is full') });
  assert.deepEqual(await readiness.check(), [
    { part: 'disk', fault: 'it is full' },
    { part: 'time', fault: 'it is late' },
  ]);
});

test('a part that cannot be checked fails', async () => {
  const { readiness, faults } = twoParts();
  faults.disk = Promise.reject(new TypeError('no disk'));
  assert.deepEqual(await readiness.check(), [
    { part: 'disk', fault: 'it could not be checked: TypeError: no disk' },
  ]);
});

test('which parts fail is logged and told when it changes, however their words change', async () => {
  const { readiness, faults, logged } = twoParts();
  let told = 0;
  const ignore = readiness.onChange(() => {
    told += 1;
  });
  await readiness.check();
  assert.deepEqual([logged.length, told], [0, 0]);
  faults.time = 'it is late by 1 s';
  await readiness.check();
  faults.time = 'it is late by 2 s';
  await readiness.check();
  assert.deepEqual([logged.length, told], [1, 1]);
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
  assert.equal(told, 2);
});

test('a check that takes longer than one that began later changes nothing any more', async () => {
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

test('once started it is checked every ten seconds, every second while a part fails, until it is stopped', async () => {
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
