import assert from 'node:assert/strict';
import { test } from 'node:test';
import { simulate } from '../../simulation/simulate.ts';
import { createDatabase, skipUnlessPostgres } from '../support/postgres.ts';

const skip = skipUnlessPostgres();
const orders = 10;
/** These open orders. Others come with `npm run simulate -- --postgres`. */
const seeds = ['1', '2'];

test('orders and money agree with two instances, one of which leads at a time', { skip }, async (t) => {
  const database = await createDatabase(t);
  const { tally, books } = await simulate({ seed: '1', orders: 4, database, instances: 2, sendsTwice: true });
  const [starts, leaders] = [tally.of('starts'), tally.of('leaders')];
  t.diagnostic(`${books.orders.length} orders, ${starts} starts, ${leaders} leaders`);
  assert.ok(books.orders.length > 0, 'no order was opened');
  assert.ok(starts > 2, 'no instance was killed or stopped');
  assert.ok(leaders > 1, 'no other instance took the lead');
});

for (const seed of seeds) {
  test(`orders and money agree after kills and lost connections on PostgreSQL: seed ${seed}`, {
    skip,
  }, async (t) => {
    const { tally, books } = await simulate({ seed, orders, database: await createDatabase(t) });
    t.diagnostic(`seed ${seed}: ${books.orders.length} orders, ${tally.of('starts')} starts`);
    assert.ok(books.orders.length > 0, 'no order was opened');
    assert.ok(tally.of('starts') > 1, 'the service was never killed or stopped');
  });
}
