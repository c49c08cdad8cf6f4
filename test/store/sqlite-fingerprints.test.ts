import assert from 'node:assert/strict';
import { test } from 'node:test';
import { nonceFingerprint } from '../../src/store/sqlite/admission.ts';
import { createFingerprintTable } from '../../src/store/sqlite/fingerprints.ts';

test('a table finds the number of each of many fingerprints, and no other', () => {
  const table = createFingerprintTable();
  const count = 20_000;
  for (let each = 1; each <= count; each += 1) table.set(nonceFingerprint(`1 ${each}`), each);
  for (let each = 1; each <= count; each += 1) assert.equal(table.get(nonceFingerprint(`1 ${each}`)), each);
  for (let each = 1; each <= count; each += 1) {
    assert.equal(table.get(nonceFingerprint(`2 ${each}`)), undefined);
  }
});

test('fingerprints that share a half have their own numbers, which can be replaced', () => {
  const table = createFingerprintTable();
  const alike = [
    { high: 1, low: 1 },
    { high: 2, low: 1 },
    { high: 1, low: 2 },
    { high: 0, low: 0 },
    { high: 0xffffffff, low: 0xffffffff },
  ];
  for (const [place, fingerprint] of alike.entries()) table.set(fingerprint, place + 1);
  table.set({ high: 2, low: 1 }, 0xffffffff);
  assert.deepEqual(
    alike.map((fingerprint) => table.get(fingerprint)),
    [1, 0xffffffff, 3, 4, 5],
  );
  assert.equal(table.get({ high: 3, low: 1 }), undefined);
});
