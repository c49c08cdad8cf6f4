import assert from 'node:assert/strict';
import { test } from 'node:test';
import { retryDelaysS } from '../../../src/domain/webhook.ts';
import { readRetryAfter, retryAtMs } from '../../../src/events/webhooks/attempt.ts';

const atMs = Date.parse('2026-11-21T12:00:00Z');
const dayMs = 86_400_000;

/** The delay after so many attempts, in milliseconds. */
function delayMs(attempts: number, chance: number, retryAfterS?: number): number | null {
  const retryMs = retryAtMs({ attempts, atMs, retryAfterS }, () => chance);
  return retryMs && retryMs - atMs;
}

test('attempts follow the documented delays, with jitter up to a tenth, and end after the last', () => {
  const delaysS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
  assert.deepEqual(retryDelaysS, delaysS);
  for (const [index, delayS] of delaysS.entries()) {
    assert.equal(delayMs(index + 1, 0), delayS * 1_000);
    assert.equal(delayMs(index + 1, 0.5), delayS * 1_050);
    assert.equal(delayMs(index + 1, 1), delayS * 1_100);
  }
  assert.equal(delayMs(10, 0), null);
});

test('Retry-After delays the next attempt up to a day, never makes it earlier, and adds none', () => {
  assert.equal(delayMs(1, 0, 120), 120_000);
  assert.equal(delayMs(2, 0, 120), 300_000);
  assert.equal(delayMs(1, 0, 86_401), dayMs);
  assert.equal(delayMs(1, 0, Number.POSITIVE_INFINITY), dayMs);
  assert.equal(delayMs(9, 1, 1e12), 95_040_000);
  assert.equal(delayMs(10, 0, 120), null);
});

test('Retry-After is read as seconds and as each HTTP date format', () => {
  const read = (text: string | undefined) => readRetryAfter(text, atMs);
  const values: readonly [string | undefined, number | undefined][] = [
    ['120', 120],
    [' 7 ', 7],
    ['99999999999999999999999', 1e23],
    ['9'.repeat(400), Number.POSITIVE_INFINITY],
    ['Sat, 21 Nov 2026 12:02:00 GMT', 120],
    ['Saturday, 21-Nov-26 12:02:00 GMT', 120],
    ['Sat Nov 21 12:02:00 2026', 120],
    ['0', undefined],
    ['-5', undefined],
    ['1.5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['', undefined],
    [undefined, undefined],
    ['Sat, 21 Nov 2026 11:59:59 GMT', undefined],
    ['Sat, 99 Nov 2026 12:02:00 GMT', undefined],
    ['2026-11-21T12:02:00Z', undefined],
  ];
  assert.deepEqual(
    values.map(([value]) => read(value)),
    values.map(([, seconds]) => seconds),
  );
});
