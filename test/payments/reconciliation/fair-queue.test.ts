import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFairQueue } from '../../../src/payments/reconciliation/fair-queue.ts';

const limits = { atOnce: 8, atOncePerCaller: 3, keptForOthers: 4 };

/** So many orders of a caller. */
const ordersOf = (callerId: number, count: number) =>
  Array.from({ length: count }, (_, index) => ({ escrowId: `${callerId}-${index}`, callerId }));

const ids = (orders: readonly { readonly escrowId: string }[]) => orders.map(({ escrowId }) => escrowId);

test('callers have slots in turns: one each, then a second one each', () => {
  const turns = createFairQueue(limits);
  const due = [...ordersOf(1, 5), ...ordersOf(2, 1), ...ordersOf(3, 2)];
  assert.deepEqual(ids(turns.begin(due)), ['1-0', '2-0', '3-0', '1-1']);
  assert.equal(turns.lastCaller(), 3);
});

test('a caller has so many slots at most, however many are free', () => {
  const turns = createFairQueue(limits);
  const begun = turns.begin(ordersOf(1, 9));
  assert.deepEqual(ids(begun), ['1-0', '1-1', '1-2']);
  assert.deepEqual(turns.begin(ordersOf(1, 9)), []);
  for (const order of begun) turns.end(order);
  assert.equal(turns.begin(ordersOf(1, 9)).length, 3);
});

test('the slots that are kept are for callers that have none', () => {
  const turns = createFairQueue(limits);
  turns.begin([...ordersOf(1, 9), ...ordersOf(2, 9)]);
  assert.deepEqual(turns.begin([...ordersOf(1, 9), ...ordersOf(2, 9)]), []);
  const others = [3, 4, 5, 6].flatMap((callerId) => ordersOf(callerId, 9));
  assert.deepEqual(ids(turns.begin(others)), ['3-0', '4-0', '5-0', '6-0']);
  assert.deepEqual(turns.begin(ordersOf(7, 1)), []);
});

test('a caller that finds no slot is not passed over, and one that has its slots is', () => {
  const turns = createFairQueue({ ...limits, atOnce: 2, keptForOthers: 0 });
  const [first = assert.fail()] = turns.begin([...ordersOf(4, 1), ...ordersOf(5, 1), ...ordersOf(6, 1)]);
  assert.equal(turns.lastCaller(), 5);
  assert.deepEqual(turns.begin(ordersOf(6, 1)), []);
  assert.equal(turns.lastCaller(), 5);
  turns.end(first);
  assert.deepEqual(ids(turns.begin(ordersOf(6, 1))), ['6-0']);
  const full = createFairQueue({ ...limits, atOncePerCaller: 1 });
  full.begin(ordersOf(4, 1));
  full.begin(ordersOf(5, 1));
  assert.deepEqual(full.begin(ordersOf(4, 1)), []);
  assert.equal(full.lastCaller(), 4);
});
