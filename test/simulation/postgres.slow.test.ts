import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from '../../simulation/simulate.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';
import { createRandom } from '../support/random.ts';

const skip = skipUnlessPostgres();
const orders = 10;
const runs = 2;
const { seed: anySeed } = createRandom();

for (let run = 0; run < runs; run += 1) {
  const seed = String(anySeed + run);
  test(`orders and money agree after kills and lost connections on PostgreSQL: seed ${seed}`, {
    skip,
  }, async (t) => {
    const { tally, books } = await simulate({ seed, orders, database: await createDatabase(t) });
    t.diagnostic(`seed ${seed}: ${books.orders.length} orders, ${tally.of('starts')} starts`);
    assert.ok(books.orders.length > 0, 'no order was opened');
    assert.ok(tally.of('starts') > 1, 'the service was never killed or stopped');
  });
}
