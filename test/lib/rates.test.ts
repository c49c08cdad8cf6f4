import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createKeyedRates, takeCell } from '../../src/lib/rates.ts';
import { createManualClock } from '../support/clock.ts';

test('a burst is taken at once, and then one in each interval', () => {
  const rate = { burst: 3, everyMs: 10 };
  let arrivalMs: number | undefined;
  const take = (nowMs: number) => {
    const cell = takeCell(arrivalMs, nowMs, rate);
    arrivalMs = cell.arrivalMs;
    return cell.allowed ? 0 : cell.excessMs;
  };
  assert.deepEqual(
    [0, 0, 0, 0, 9, 10, 10, 19, 100, 100, 100, 100].map(take),
    [0, 0, 0, 10, 1, 0, 10, 1, 0, 0, 0, 10],
  );
});

test('each key has a rate of its own below that of all, and a rejected one takes nothing', () => {
  const clock = createManualClock();
  const take = createKeyedRates(clock, {
    each: { burst: 2, everyMs: 60_000 },
    total: { burst: 5, everyMs: 1_000 },
  });
  assert.deepEqual(['a', 'a', 'a', 'b', 'b', 'c', 'd', 'a'].map(take), [0, 0, 60, 0, 0, 0, 1, 60]);
  clock.advance(1_000);
  // What was rejected because of all was not taken from its key.
  assert.deepEqual(['d', 'd'].map(take), [0, 1]);
  clock.advance(59_000);
  assert.deepEqual(['a', 'a', 'd', 'd'].map(take), [0, 60, 0, 1]);
});
