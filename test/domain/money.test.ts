import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountMin } from '../../src/domain/escrow-terms.ts';
import { priceMin } from '../../src/domain/filing.ts';
import { checkMoney, moneyMax } from '../../src/domain/money.ts';

test('the largest amount is the largest integer that a JSON number keeps exact', () => {
  assert.equal(moneyMax, 2n ** 53n - 1n);
});

for (const [field, min, documented] of [
  ['price', priceMin, 0n],
  ['amount', amountMin, 1n],
] as const)
  test(`${field} is ${documented} to 2^53-1`, () => {
    assert.equal(min, documented);
    for (const value of [min, min + 1n, moneyMax]) assert.deepEqual(checkMoney(field, value, min), []);
    const rule = `a whole number of minor units (fen, cents) from ${min} to 9007199254740991`;
    for (const value of [min - 1n, -1n, moneyMax + 1n, 2n ** 64n])
      assert.deepEqual(checkMoney(field, value, min), [{ field, rule: `must be ${rule}` }]);
    assert.deepEqual(checkMoney(field, undefined, min), [{ field, rule: `is required: ${rule}` }]);
  });
