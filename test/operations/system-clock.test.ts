import assert from 'node:assert/strict';
import { test } from 'node:test';
import { systemClock } from '../../src/operations/registry.ts';

test('a timer of the system clock does not keep the process alive', (t) => {
  const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  const before = timers();
  t.after(systemClock.after(60_000, () => {}));
  assert.equal(timers(), before);
});
