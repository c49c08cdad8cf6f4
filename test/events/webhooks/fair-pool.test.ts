import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFairPool, type FairPool, type Permit } from '../../../src/events/webhooks/fair-pool.ts';

const limits = { atOnce: 12, atOnceFailing: 3, atOncePerEndpoint: 4, atOncePerCaller: 6 };

/** Endpoints 10 to 19 are of caller 1, and so on. */
const slotOf = (id: number, isFailing = false): Permit => ({ id, callerId: Math.floor(id / 10), isFailing });

/** Has endpoints take part. */
function asking(slots: FairPool, ids: readonly number[], isFailing = false): void {
  for (const id of ids) slots.request(slotOf(id, isFailing));
}

/** Takes all slots that there are; whose turns they were, in their order. */
function takeAll(slots: FairPool): number[] {
  const taken: number[] = [];
  for (let slot = slots.take(); slot !== undefined; slot = slots.take()) taken.push(slot.id);
  return taken;
}

test('callers have turns, and the endpoints of each among them', () => {
  const slots = createFairPool(limits);
  asking(slots, [11, 12, 13, 21, 31]);
  assert.deepEqual(takeAll(slots), [11, 21, 31, 12, 21, 31, 13, 21, 31, 11, 21, 31]);
  assert.equal(slots.taken(), 12);
});

test('an endpoint has so many slots at most, and a caller so many', () => {
  const one = createFairPool(limits);
  asking(one, [11]);
  assert.deepEqual(takeAll(one), [11, 11, 11, 11]);
  const two = createFairPool(limits);
  asking(two, [11, 12]);
  assert.deepEqual(takeAll(two), [11, 12, 11, 12, 11, 12]);
});

test('a slot that is given back is taken by whoever is next', () => {
  const slots = createFairPool(limits);
  asking(slots, [11, 12]);
  takeAll(slots);
  slots.release(slotOf(12));
  assert.deepEqual(takeAll(slots), [11]);
  slots.release(slotOf(12));
  slots.release(slotOf(11));
  assert.deepEqual(takeAll(slots), [12, 11]);
});

test('those that fail have slots of their own, one each', () => {
  const slots = createFairPool(limits);
  asking(slots, [11, 21, 31, 41], true);
  assert.deepEqual(takeAll(slots), [11, 21, 31]);
  asking(slots, [12, 22, 32]);
  assert.deepEqual(takeAll(slots), [12, 22, 32, 12, 22, 32, 12, 22, 32, 12, 22, 32]);
  slots.release(slotOf(21, true));
  assert.deepEqual(takeAll(slots), [41]);
});

test('an endpoint that fails now has no further slot until all that it had are given back', () => {
  const slots = createFairPool(limits);
  asking(slots, [11]);
  takeAll(slots);
  slots.request(slotOf(11, true));
  for (const _ of [1, 2, 3]) slots.release(slotOf(11));
  assert.deepEqual(takeAll(slots), []);
  slots.release(slotOf(11));
  assert.deepEqual(takeAll(slots), [11]);
  assert.equal(slots.taken(), 1);
});

test('one that is called off has no turn any more', () => {
  const slots = createFairPool(limits);
  asking(slots, [11, 12, 21]);
  slots.cancel(slotOf(11));
  slots.cancel(slotOf(21));
  assert.deepEqual(takeAll(slots), [12, 12, 12, 12]);
});
