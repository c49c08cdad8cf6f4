import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFairQueue } from '../../src/store/engine/batcher.ts';

interface Item {
  readonly name: string;
  readonly share: number;
  readonly cost: number;
}

/** A queue with turns of 4 and batches of 10. */
function openQueue() {
  const queue = createFairQueue<Item>({ turn: 4, batch: 10 });
  let added = 0;
  return {
    length: queue.length,
    add: (share: number, cost: number, count = 1) => {
      for (let left = count; left > 0; left -= 1) {
        added += 1;
        queue.add({ name: `${share}:${added}`, share, cost });
      }
    },
    /** The shares of the next batch. */
    shares: () => queue.take().map(({ share }) => share),
    names: () => queue.take().map(({ name }) => name),
  };
}

test('items of one share keep their order, and a batch does not exceed its cost', () => {
  const { add, names, length } = openQueue();
  add(1, 1, 12);
  assert.equal(length(), 12);
  assert.deepEqual(
    names(),
    Array.from({ length: 10 }, (_, nth) => `1:${nth + 1}`),
  );
  assert.deepEqual(names(), ['1:11', '1:12']);
  assert.deepEqual([names(), length()], [[], 0]);
});

test('a share with many items gets no more than the others', () => {
  const { add, shares } = openQueue();
  add(1, 1, 100);
  add(2, 1, 3);
  add(3, 1, 6);
  assert.deepEqual(shares(), [1, 1, 1, 1, 2, 2, 2, 3, 3, 3]);
  // The turn of 3 continues after the batch.
  assert.deepEqual(shares(), [3, 1, 1, 1, 1, 3, 3, 1, 1, 1]);
});

test('shares get the same total cost, whatever their items cost', () => {
  const { add, names } = openQueue();
  const costs = [1, 2, 3, 4, 9, 25];
  for (const [share, cost] of costs.entries()) add(share, cost, 5_000);
  const used = costs.map(() => 0);
  for (let batches = 0; batches < 1_000; batches += 1)
    for (const name of names()) {
      const share = Number(name.split(':')[0]);
      used[share] = (used[share] ?? 0) + (costs[share] ?? 0);
    }
  const difference = Math.max(...used) - Math.min(...used);
  assert.ok(difference <= 25 + 4, `${used}`);
});

test('an item that costs more than a turn is a batch of its own, once its share has saved enough', () => {
  const { add, names } = openQueue();
  add(1, 9);
  add(2, 4, 4);
  assert.deepEqual(names(), ['2:2', '2:3']);
  assert.deepEqual(names(), ['1:1']);
  assert.deepEqual(names(), ['2:4', '2:5']);
});

test('an item that costs more than a batch is taken as well', () => {
  const { add, names } = openQueue();
  add(1, 1_000);
  add(2, 1);
  assert.deepEqual([names(), names(), names()], [['2:2'], ['1:1'], []]);
});

test('a share without items saves nothing', () => {
  const { add, shares } = openQueue();
  for (let nth = 0; nth < 100; nth += 1) {
    add(1, 1);
    shares();
  }
  add(1, 9);
  add(2, 4, 2);
  assert.deepEqual([shares(), shares()], [[2, 2], [1]]);
});
