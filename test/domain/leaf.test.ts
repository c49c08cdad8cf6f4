import assert from 'node:assert/strict';
import { test } from 'node:test';
import { leafRanges, readLeafRanges } from '../../src/domain/leaf.ts';

test('leaf indexes are written as sorted ranges, and read as such', () => {
  for (const [indexes, text] of [
    [[0], '0'],
    [[7, 8], '7-8'],
    [[20, 13, 12, 15, 14], '12-15,20'],
    [[0, 2, 4], '0,2,4'],
    [[9, 10, 11, 99, 100, Number.MAX_SAFE_INTEGER], '9-11,99-100,9007199254740991'],
  ] as const) {
    assert.equal(leafRanges(indexes), text);
    const read = readLeafRanges(text) ?? [];
    const all = read.flatMap(({ first, last }) =>
      Array.from({ length: last - first + 1 }, (_, nth) => first + nth),
    );
    assert.deepEqual(
      all,
      indexes.toSorted((one, other) => one - other),
    );
  }
});

test('no other text for leaf indexes is read', () => {
  for (const text of [
    ...['', ',', '1,', ',1', '1,,3', ' 1', '1 ', '1, 3', '+1', '-1', '1-', '1.0', '1e3', '0x1', '١'],
    ...['01', '00', '1-02', '0-0'],
    // Not sorted, or over each other.
    ...['3,1', '3,3', '5-5', '5-4', '1-3,3', '1-3,2-5', '4-6,1-2'],
    // They follow one another, and are one range.
    ...['1,2', '1-3,4', '1-2,3-4'],
    // Integers that are not safe.
    ...['9007199254740992', '1-9007199254740992', '9'.repeat(400)],
  ])
    assert.equal(readLeafRanges(text), undefined, JSON.stringify(text));
});
