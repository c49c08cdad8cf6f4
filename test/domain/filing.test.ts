import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { test } from 'node:test';
import {
  checkArtwork,
  evidenceChain,
  evidenceHash,
  filingNumber,
  filingSequenceMax,
  nextFilingNumber,
  retentionYears,
} from '../../src/domain/filing.ts';
import { apiError } from '../support/rejected.ts';
import { artwork } from '../support/samples.ts';
import vectors from '../testdata/evidence-hash.json' with { type: 'json' };

const valid = { ...artwork, price: BigInt(artwork.price) };

test('a filing number is AS, the year and six digits', () => {
  assert.equal(filingNumber(2026, 1), 'AS-2026-000001');
  assert.equal(filingNumber(2026, 123_456), 'AS-2026-123456');
  assert.equal(filingNumber(2027, 999_999), 'AS-2027-999999');
});

test('the next number of a year follows the last one', () => {
  assert.equal(nextFilingNumber(2026, undefined), 'AS-2026-000001');
  assert.equal(nextFilingNumber(2026, 'AS-2026-000009'), 'AS-2026-000010');
  assert.equal(nextFilingNumber(2026, 'AS-2026-999998'), 'AS-2026-999999');
});

test('a year has 999999 numbers', () => {
  assert.equal(filingSequenceMax, 999_999);
  const exhausted = apiError('FILING_NUMBERS_EXHAUSTED', /999999.*2026/);
  assert.throws(() => filingNumber(2026, 1_000_000), exhausted);
  assert.throws(() => nextFilingNumber(2026, 'AS-2026-999999'), exhausted);
});

for (const { name, record, canonical, hash } of vectors) {
  test(`the evidence hash is that of its test vector: ${name}`, () => {
    assert.equal(createHash('sha256').update(canonical).digest('hex'), hash);
    assert.equal(evidenceHash({ ...record, price: BigInt(record.price) }), hash);
  });
}

test('every member of the evidence changes its hash', () => {
  const record = { ...valid, filingNo: 'AS-2026-000001', timestamp: '2026-11-21T09:15:00+08:00' };
  const original = evidenceHash(record);
  const changed = Object.entries(record).map(([member, value]) =>
    evidenceHash({ ...record, [member]: typeof value === 'bigint' ? value + 1n : `${value}.` }),
  );
  assert.equal(changed.length, 8);
  assert.equal(new Set([original, ...changed]).size, 9);
});

test('the evidence hash covers only the eight members', () => {
  const record = { ...valid, filingNo: 'AS-2026-000001', timestamp: '2026-11-21T09:15:00+08:00' };
  assert.equal(evidenceHash({ ...record, caller: 'a', hash: 'b' } as typeof record), evidenceHash(record));
});

test('all invalid fields are reported in the documented order', () => {
  const nothing = { author: '', era: '', size: '', material: '', condition: '' };
  const fields = checkArtwork(nothing).map(({ field }) => field);
  assert.deepEqual(fields, ['author', 'era', 'size', 'material', 'condition', 'price']);
});

test('no chain is selected, and the retention is five years', () => {
  assert.match(evidenceChain, /under selection/);
  assert.match(evidenceChain, /no chain/);
  assert.match(evidenceChain, /no judicial-evidence capability/);
  assert.equal(retentionYears, 5);
});
