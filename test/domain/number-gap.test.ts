import assert from 'node:assert/strict';
import { test } from 'node:test';
import { busiestStretch, randomStretch, safeNumberFloor } from '../../src/domain/number-gap.ts';

test('half of the numbers that are left are skipped, rounded up', () => {
  assert.equal(safeNumberFloor(0, 999_999, 0), 500_000);
  assert.equal(safeNumberFloor(1, 999_999, 1), 500_000);
  assert.equal(safeNumberFloor(999_998, 999_999, 0), 999_999);
  assert.equal(safeNumberFloor(999_999, 999_999, 0), 999_999);
});

test('ten times the busiest period is skipped if that is more, even past the last number of the year', () => {
  assert.equal(safeNumberFloor(900_000, 999_999, 5_000), 950_000);
  assert.equal(safeNumberFloor(900_000, 999_999, 5_001), 950_010);
  assert.equal(safeNumberFloor(980_000, 999_999, 5_000), 1_030_000);
});

test('up to 10,000 more numbers are skipped at random, but at most a tenth of the remaining ones', () => {
  assert.equal(randomStretch(500_000, 999_999, 0), 0);
  assert.equal(randomStretch(500_000, 999_999, 0.5), 5_000);
  assert.equal(randomStretch(500_000, 999_999, 1 - Number.EPSILON), 9_999);
  assert.equal(randomStretch(999_899, 999_999, 1 - Number.EPSILON), 9);
  assert.equal(randomStretch(999_999, 999_999, 1 - Number.EPSILON), 0);
});

test('the busiest stretch is found wherever it is, its two ends included', () => {
  assert.equal(busiestStretch([], 10), 0);
  assert.equal(busiestStretch([7], 10), 1);
  assert.equal(busiestStretch([0, 10, 20, 30], 10), 2);
  assert.equal(busiestStretch([0, 11, 22], 10), 1);
  assert.equal(busiestStretch([0, 50, 51, 52, 60, 61, 100], 10), 4);
  assert.equal(busiestStretch([5, 5, 5, 100], 1), 3);
  assert.equal(busiestStretch([0, 1, 2, 3], 1_000), 4);
});
