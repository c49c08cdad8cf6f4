import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { test } from 'node:test';
import { escrowId, escrowSequenceMax } from '../../src/domain/escrow-id.ts';
import { createRandom } from '../support/random.ts';
import { apiError } from '../support/rejected.ts';

const key = randomBytes(32);

const idsOf = (places: Iterable<number>, year = 2026, ofKey: Uint8Array = key) =>
  Array.from(places, (place) => escrowId(year, place, ofKey));

const firstPlaces = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test('an escrow id is ES, the year and four of 0-9 A-Z', () => {
  for (const id of idsOf([1, 2, 36 ** 2, 36 ** 3, escrowSequenceMax]))
    assert.match(id, /^ES-2026-[0-9A-Z]{4}$/);
});

test('a year has 36^4 ids', () => {
  assert.equal(escrowSequenceMax, 36 ** 4);
  const exhausted = apiError('ESCROW_NUMBERS_EXHAUSTED', /1679616.*2026/);
  assert.throws(() => escrowId(2026, escrowSequenceMax + 1, key), exhausted);
});

test('ids do not repeat within a year', () => {
  // If the ids were random, about ten pairs of this many would be equal.
  const random = createRandom();
  const places = new Set([...firstPlaces(3_000), escrowSequenceMax, escrowSequenceMax - 1]);
  while (places.size < 6_000) places.add(1 + random.below(escrowSequenceMax));
  assert.equal(new Set(idsOf(places)).size, places.size, `seed ${random.seed}`);
});

test('years and keys have different ids', () => {
  const four = (ids: string[]) => ids.map((id) => id.slice(-4));
  const original = four(idsOf(firstPlaces(200)));
  for (const other of [idsOf(firstPlaces(200), 2027), idsOf(firstPlaces(200), 2026, randomBytes(32))]) {
    const same = four(other).filter((id, index) => id === original[index]);
    assert.ok(same.length < 5, `${same.length} of 200 are the same`);
  }
});

test('the steps between ids differ', () => {
  const values = idsOf(firstPlaces(1_000)).map((id) => Number.parseInt(id.slice(-4), 36));
  const steps = values.slice(1).map((value, index) => value - (values[index] ?? 0));
  assert.ok(new Set(steps).size > 990);
});
