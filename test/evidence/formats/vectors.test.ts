import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { logSignersOf, readCheckpoint, readVerifierKey } from '../../../src/evidence/formats/checkpoint.ts';
import { isIncluded, nodeHash } from '../../../src/evidence/formats/tree.ts';
import { noteKey } from '../../support/note-keys.ts';
import { createTree, hashOfLeaf, SmallLog } from '../verifier/small-log.ts';

/** What golang.org/x/mod/sumdb/{tlog,note} printed: see test/clients/go/main.go. */
interface Vectors {
  readonly roots: Readonly<Record<string, string>>;
  readonly sha256OfAllRoots: string;
  readonly sha256OfInclusionProofs: string;
  readonly sha256OfConsistencyProofs: string;
  readonly inclusion: readonly VectorProof[];
  readonly vkeys: readonly string[];
  readonly note: string;
}
interface VectorProof {
  readonly index: number;
  readonly size: number;
  readonly path: readonly string[];
}

const vectors: Vectors = JSON.parse(
  readFileSync(join(import.meta.dirname, '..', '..', 'testdata', 'transparency-log.json'), 'utf8'),
);
const leaves = Array.from({ length: 600 }, (_, index) => hashOfLeaf(`leaf ${index}`));
const tree = createTree(leaves);
const leafAt = (index: number) => leaves[index] ?? assert.fail();
const fromHex = (text: string) => Buffer.from(text, 'hex');
const rootOf = (size: number) => fromHex(vectors.roots[size] ?? assert.fail(`${size}`));

/** Another hash than this. */
const other = (hash: Uint8Array) => Buffer.from(hash.map((byte, place) => (place === 0 ? byte ^ 1 : byte)));

test('the tree of these tests is that of golang.org/x/mod/sumdb/tlog, at every size to 600', () => {
  const [roots, inclusion, consistency] = [createHash('sha256'), createHash('sha256'), createHash('sha256')];
  for (let size = 0; size <= 600; size += 1) {
    roots.update(tree.root(size));
    if (size === 0) continue;
    const [third, half] = [Math.floor(size / 3), Math.floor(size / 2)];
    for (const index of [0, third, half, size - 1]) {
      for (const hash of tree.inclusion(index, size)) inclusion.update(hash);
    }
    for (const older of [third, half, size - 1, size]) {
      for (const hash of tree.consistency(Math.max(1, older), size)) consistency.update(hash);
    }
  }
  assert.deepEqual(
    [roots, inclusion, consistency].map((hash) => hash.digest('hex')),
    [vectors.sha256OfAllRoots, vectors.sha256OfInclusionProofs, vectors.sha256OfConsistencyProofs],
  );
});

test('the inclusion proofs of golang.org/x/mod/sumdb/tlog hold', () => {
  assert.ok(vectors.inclusion.length > 40);
  for (const { index, size, path } of vectors.inclusion) {
    assert.ok(isIncluded(leafAt(index), index, size, path.map(fromHex), rootOf(size)), `${index} in ${size}`);
  }
});

/** Some of the numbers below a size: both ends, the middle, and others that differ from size to size. */
function sample(size: number): number[] {
  if (size <= 32) return Array.from({ length: size }, (_, index) => index);
  const numbers = [0, 1, size >> 1, size - 2, size - 1, 2 ** Math.floor(Math.log2(size - 1))];
  return [...new Set([...numbers, (size * 7919) % size, (size * 31 + 17) % size])];
}

/** All small sizes, and those around complete trees. */
const sizes = [
  ...Array.from({ length: 40 }, (_, size) => size),
  ...[63, 64, 65, 127, 128, 129, 255, 256, 257, 511, 512, 513, 600],
];

/** Proofs that differ from this one: longer, shorter, and with one hash changed, which is each hash in small trees. */
function alteredProofs(path: readonly Uint8Array[], size: number): readonly (readonly Uint8Array[])[] {
  const places = size <= 64 || path.length === 0 ? path.keys() : [size % path.length];
  const changed = Array.from(places, (at) => path.with(at, other(path[at] ?? assert.fail())));
  return [[...path, tree.root(size)], ...(path.length > 0 ? [path.slice(1), ...changed] : [])];
}

test('a leaf is included at its index, and nowhere else', () => {
  for (const size of sizes.slice(1)) {
    const root = tree.root(size);
    for (const index of sample(size)) {
      const [leaf, path, place] = [leafAt(index), tree.inclusion(index, size), `${index} in ${size}`];
      assert.ok(isIncluded(leaf, index, size, path, root), place);
      assert.ok(!isIncluded(other(leaf), index, size, path, root), `${place}: another leaf`);
      assert.ok(!isIncluded(leaf, index + 1, size, path, root), `${place}: the next index`);
      assert.ok(!isIncluded(leaf, index + size, size, path, root), `${place}: an index beyond`);
      assert.ok(!isIncluded(leaf, index, size, path, other(root)), `${place}: another root`);
      for (const [nth, altered] of alteredProofs(path, size).entries())
        assert.ok(!isIncluded(leaf, index, size, altered, root), `${place}: altered proof ${nth}`);
    }
  }
});

test('trees of more than 2^32 leaves are checked too', () => {
  // Two halves of 2^40 leaves each, whose roots are given, with one more leaf.
  const [left, right, last] = [leafAt(1), leafAt(2), leafAt(3)];
  const size = 2 ** 41 + 1;
  const root = nodeHash(nodeHash(left, right), last);
  assert.ok(isIncluded(last, 2 ** 41, size, [nodeHash(left, right)], root));
});

test('a note of golang.org/x/mod/sumdb/note is verified, by one of its keys or by both', () => {
  const checkpoint = readCheckpoint(vectors.note, 'the note');
  const keys = vectors.vkeys.map(readVerifierKey);
  assert.deepEqual([checkpoint.origin, checkpoint.size], ['log.example/go', 600]);
  assert.deepEqual(Buffer.from(checkpoint.root), tree.root(600));
  assert.deepEqual(logSignersOf(checkpoint, keys, 'the note'), keys);
  for (const key of keys) assert.deepEqual(logSignersOf(checkpoint, [key], 'the note'), [key]);
});

test('the log of these tests signs byte for byte like golang.org/x/mod/sumdb/note', () => {
  const keys = [0, 1].map((seed) => noteKey('log.example/go', Buffer.alloc(32, seed)));
  assert.deepEqual(
    keys.map(({ vkey }) => vkey),
    vectors.vkeys,
  );
  assert.equal(new SmallLog('log.example/go', keys).checkpoint(600, tree.root(600)), vectors.note);
});
