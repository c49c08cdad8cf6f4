import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkRange } from '../../src/domain/violation.ts';

test('a whole number is within its bounds, both included', () => {
  const bounds = { min: 0, max: 30 };
  for (const value of [0, 1, 30]) assert.deepEqual(checkRange('waitSeconds', value, bounds), []);
  const broken = { field: 'waitSeconds', rule: 'must be an integer from 0 to 30' };
  for (const value of [-1, 31, 1.5, Number.NaN, Number.POSITIVE_INFINITY])
    assert.deepEqual(checkRange('waitSeconds', value, bounds), [broken]);
});
