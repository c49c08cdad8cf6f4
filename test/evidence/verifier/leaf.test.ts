import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VerificationFailure } from '../../../src/evidence/formats/failure.ts';
import { type RecordLeaf, readLeaf } from '../../../src/evidence/verifier/record.ts';

const members = { commitment: '0f'.repeat(32), kind: 'TRANSFER', number: 'AS-2026-000010', sequence: 2 };
const textOf = (leaf: object) => JSON.stringify({ ...leaf, version: 1 });
const leafText = textOf({ ...members, time: 1_790_000_010 });

/** The leaf of a record; undefined if the text is none. */
function read(text: string): RecordLeaf | undefined {
  try {
    return readLeaf(text, 'it') as RecordLeaf;
  } catch (error) {
    assert.ok(error instanceof VerificationFailure);
    return undefined;
  }
}

test('no other text than the canonical one is read as the leaf of a record', () => {
  assert.deepEqual({ ...read(leafText) }, { ...members, timeS: 1_790_000_010 });
  const pieces = ['', '0', '1', '9', 'f', 'F', '"', ' ', '-', '.', 'e', ',', ':', '\\', '\n', 'é'];
  let others = 0;
  for (let at = 0; at <= leafText.length; at += 1) {
    for (const [piece, end] of pieces.flatMap((each) => [[each, at] as const, [each, at + 1] as const])) {
      const text = leafText.slice(0, at) + piece + leafText.slice(end);
      const leaf = text === leafText ? undefined : read(text);
      if (leaf === undefined) continue;
      others += 1;
      const { commitment, kind, number, sequence, timeS } = leaf;
      assert.equal(textOf({ commitment, kind, number, sequence, time: timeS }), text);
    }
  }
  assert.ok(others > 100);
});

test('the sequence and the time of a leaf have bounds', () => {
  assert.equal(read(textOf({ ...members, time: 253_402_300_799 }))?.timeS, 253_402_300_799);
  for (const wrong of [
    { ...members, time: 253_402_300_800 },
    { ...members, time: Number.MAX_SAFE_INTEGER + 2 },
    { ...members, sequence: 1, time: 1 },
    { ...members, sequence: 0, time: 1 },
    { ...members, kind: 'FILING', time: 1 },
    { ...members, kind: 'LOG_BEGUN', time: 1 },
  ])
    assert.equal(read(textOf(wrong)), undefined);
});
