import assert from 'node:assert/strict';
import { test } from 'node:test';
import { amountMin } from '../../src/domain/escrow-terms.ts';
import { priceMin } from '../../src/domain/filing.ts';
import { checkMoney, moneyMax } from '../../src/domain/money.ts';

test('the largest amount is the largest integer that a JSON number keeps exact', () => {
  assert.equal(moneyMax, 2n ** 53n - 1n);
});

test('a price is 0 to 2^53-1', () => {
  assert.equal(priceMin, 0n);
  for (const price of [0n, 1n, moneyMax]) assert.deepEqual(checkMoney('price', price, priceMin), []);
  for (const price of [-1n, moneyMax + 1n, 2n ** 64n, undefined]) {
    const [violation] = checkMoney('price', price, priceMin);
    assert.equal(violation?.field, 'price');
    assert.match(violation.rule, /a whole number of minor units \(fen, cents\) from 0 to 9007199254740991/);
  }
});

test('an escrowed amount is 1 to 2^53-1', () => {
  assert.equal(amountMin, 1n);
  for (const amount of [1n, moneyMax]) assert.deepEqual(checkMoney('amount', amount, amountMin), []);
  for (const amount of [0n, -1n, moneyMax + 1n, undefined]) {
    const [violation] = checkMoney('amount', amount, amountMin);
    assert.equal(violation?.field, 'amount');
    assert.match(violation.rule, /a whole number of minor units \(fen, cents\) from 1 to 9007199254740991/);
  }
});
