import assert from 'node:assert/strict';
import { test } from 'node:test';
import { shapeNames } from '../../simulation/shapes.ts';
import { simulate } from '../../simulation/simulate.ts';

const orders = 60;

// Other seeds come with `npm run simulate`: what they find must not stop an unrelated change.
for (const [index, shape] of shapeNames.entries()) {
  const seed = String(1 + index);
  test(`${shape}: orders and money agree after faults, kills and restarts: seed ${seed}`, async (t) => {
    const { tally, books } = await simulate({ seed, orders, shape });
    t.diagnostic(`seed ${seed}: ${books.orders.length} orders, ${tally.of('starts')} starts`);
    assert.ok(books.orders.length > 0, 'no order was opened');
    assert.ok(tally.of('starts') > 1, 'the service was never killed or stopped');
  });
}

test('orders and money agree after a kill at each step of each instruction', async () => {
  const { tally } = await simulate({ seed: '1', orders: 60, shape: 'SIMULATED', killsAtEachStep: true });
  const steps = ['FREEZE', 'RELEASE', 'REFUND'].flatMap((kind) => [
    ...[`after ${kind} is prepared`, `before ${kind}`, `after ${kind}`],
  ]);
  const moves = ['UNPAID to FROZEN', 'FROZEN to RELEASED', 'FROZEN to REFUNDED', 'UNPAID to CLOSED'];
  steps.push('before CANCEL', 'after CANCEL', 'after a commit', 'after an instruction is recorded as sent');
  steps.push(...moves.map((move) => `after ${move}`));
  assert.deepEqual(
    steps.filter((step) => tally.of(`kill ${step}`) === 0),
    [],
  );
});

test('the events of each provider shape occur', async () => {
  const stripe = await simulate({ seed: '1', orders: 100, shape: 'STRIPE' });
  assert.ok(stripe.tally.of('fault saved error') > 0);
  const entries = stripe.books.orders.flatMap(({ entries }) => entries);
  for (const payment of ['PARTLY_RETURNED', 'DISPUTED', 'RETURNED']) {
    assert.ok(entries.includes(`RELEASED ${payment}`), payment);
  }
  const mangopay = await simulate({ seed: '1', orders: 60, shape: 'MANGOPAY' });
  const statuses = new Set(mangopay.books.holds.map(({ status }) => status));
  assert.ok(statuses.has('RETURNED'));
  assert.ok(!statuses.has('LAPSED') && !statuses.has('AWAITING_BUYER'));
});

test('a seed always gives the same run, and another seed another run', async () => {
  const digestOf = async (seed: string) => (await simulate({ seed, orders: 15 })).digest;
  const first = await digestOf('again');
  assert.equal(await digestOf('again'), first);
  assert.notEqual(await digestOf('another'), first);
});
