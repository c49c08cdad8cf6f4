import assert from 'node:assert/strict';
import { test } from 'node:test';
import { exampleArtwork } from '../../src/domain/example.ts';
import { chargedCurrencies, checkAmount } from '../../src/payments/stripe/amounts.ts';
import { opened } from './stripe-support.ts';

const isTaken = (amount: bigint, currency: string) => checkAmount({ amount, currency }).length === 0;

test('amounts are bounded by currency, before the order is stored', async (t) => {
  const { provider, order } = await opened(t);
  for (const [currency, least] of [
    ['USD', 50n],
    ['GBP', 30n],
    ['JPY', 50n],
    ['HKD', 400n],
    ['HUF', 17_500n],
    ['AED', 200n],
    // For currencies that are not in its table, Stripe decides.
    ['CNY', 1n],
  ] as const) {
    assert.equal(isTaken(least, currency), true, currency);
    assert.equal(isTaken(least - 1n, currency), false, currency);
    assert.equal(isTaken(99_999_999n, currency), true, currency);
    assert.equal(isTaken(100_000_000n, currency), false, currency);
  }
  assert.deepEqual(provider.check(order('buyer', { amount: 1n, currency: 'USD' })), [
    {
      field: 'amount',
      rule: 'must be from 50 to 99999999, in minor units of USD, at this payment provider',
    },
  ]);
});

test('amounts in currencies with three decimals end in 0', () => {
  for (const currency of ['BHD', 'JOD', 'KWD', 'OMR', 'TND']) {
    assert.equal(isTaken(12_340n, currency), true);
    assert.deepEqual(checkAmount({ amount: 12_345n, currency }), [
      {
        field: 'amount',
        rule: `must end in 0: this payment provider takes no single thousandths of ${currency}`,
      },
    ]);
  }
});

test('the price of the example fits', () => {
  assert.equal(isTaken(BigInt(exampleArtwork.price), 'CNY'), true);
});

test('the currencies are codes of ISO 4217, each once', () => {
  assert.equal(new Set(chargedCurrencies).size, chargedCurrencies.length);
  const known = Intl.supportedValuesOf('currency');
  assert.deepEqual(
    chargedCurrencies.filter((code) => !known.includes(code)),
    [],
  );
});
