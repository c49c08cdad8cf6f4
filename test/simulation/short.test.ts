import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from '../../simulation/simulate.ts';
import { createRandom } from '../support/random.ts';

const orders = 60;
const { seed: anySeed } = createRandom();

for (const seed of ['1', '2', String(anySeed)]) {
  test(`orders and money agree after faults, kills and restarts: seed ${seed}`, async (t) => {
    const { tally, books } = await simulate({ seed, orders });
    t.diagnostic(`seed ${seed}: ${books.orders.length} orders, ${tally.of('starts')} starts`);
    assert.ok(books.orders.length > orders / 2, `${books.orders.length} orders`);
    assert.ok(tally.of('starts') > 1, 'the service was never killed or stopped');
  });
}

test('the same seed gives the same run, another one another', async () => {
  const digestOf = async (seed: string) => (await simulate({ seed, orders: 15 })).digest;
  const first = await digestOf('again');
  assert.equal(await digestOf('again'), first);
  assert.notEqual(await digestOf('another'), first);
});
