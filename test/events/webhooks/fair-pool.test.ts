import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createFairPool, type FairPool, type Permit } from '../../../src/events/webhooks/fair-pool.ts';

const limits = { atOnce: 12, atOnceFailing: 3, atOncePerEndpoint: 4, atOncePerCaller: 6 };

/** Endpoints 10 to 19 are of caller 1, and so on. */
const permitOf = (id: number, isFailing = false): Permit => ({
  id,
  callerId: Math.floor(id / 10),
  isFailing,
});

/** Requests permits for endpoints. */
function request(pool: FairPool, ids: readonly number[], isFailing = false): void {
  for (const id of ids) pool.request(permitOf(id, isFailing));
}

/** Takes all permits. Returns the endpoints, in order. */
function takeAll(pool: FairPool): number[] {
  const taken: number[] = [];
  for (let permit = pool.take(); permit !== undefined; permit = pool.take()) taken.push(permit.id);
  return taken;
}

test('callers take turns, and so do the endpoints of a caller', () => {
  const pool = createFairPool(limits);
  request(pool, [11, 12, 13, 21, 31]);
  assert.deepEqual(takeAll(pool), [11, 21, 31, 12, 21, 31, 13, 21, 31, 11, 21, 31]);
  assert.equal(pool.taken(), 12);
});

test('the permits of an endpoint and of a caller are limited', () => {
  const one = createFairPool(limits);
  request(one, [11]);
  assert.deepEqual(takeAll(one), [11, 11, 11, 11]);
  const two = createFairPool(limits);
  request(two, [11, 12]);
  assert.deepEqual(takeAll(two), [11, 12, 11, 12, 11, 12]);
});

test('a released permit goes to the next endpoint', () => {
  const pool = createFairPool(limits);
  request(pool, [11, 12]);
  takeAll(pool);
  pool.release(permitOf(12));
  assert.deepEqual(takeAll(pool), [11]);
  pool.release(permitOf(12));
  pool.release(permitOf(11));
  assert.deepEqual(takeAll(pool), [12, 11]);
});

test('failing endpoints have a pool of their own, with one permit each', () => {
  const pool = createFairPool(limits);
  request(pool, [11, 21, 31, 41], true);
  assert.deepEqual(takeAll(pool), [11, 21, 31]);
  request(pool, [12, 22, 32]);
  assert.deepEqual(takeAll(pool), [12, 22, 32, 12, 22, 32, 12, 22, 32, 12, 22, 32]);
  pool.release(permitOf(21, true));
  assert.deepEqual(takeAll(pool), [41]);
});

test('an endpoint that starts to fail gets no permit until it has released all', () => {
  const pool = createFairPool(limits);
  request(pool, [11]);
  takeAll(pool);
  pool.request(permitOf(11, true));
  for (const _ of [1, 2, 3]) pool.release(permitOf(11));
  assert.deepEqual(takeAll(pool), []);
  pool.release(permitOf(11));
  assert.deepEqual(takeAll(pool), [11]);
  assert.equal(pool.taken(), 1);
});

test('a cancelled endpoint gets no permit', () => {
  const pool = createFairPool(limits);
  request(pool, [11, 12, 21]);
  pool.cancel(permitOf(11));
  pool.cancel(permitOf(21));
  assert.deepEqual(takeAll(pool), [12, 12, 12, 12]);
});
