import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  appendLeaf,
  completedBy,
  consistencyPath,
  emptyTree,
  inclusionPath,
  type LeafRange,
  leafHash,
  rootOf,
  rootOfProof,
  subtreesOf,
  type TreeHead,
} from '../../src/domain/merkle.ts';
import { createTree, hashOfLeaf } from '../evidence/verifier/small-log.ts';

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

const leaves = Array.from({ length: 600 }, (_, at) => `leaf ${at}`);
/** The recursions of RFC 6962. test/evidence/formats/vectors.test.ts compares them with golang.org/x/mod/sumdb/tlog. */
const expected = createTree(leaves.map(hashOfLeaf));

/** Builds a tree, and a function that returns the hash of a range. */
function grown(size: number) {
  let tree: TreeHead = emptyTree;
  const completed: (readonly Uint8Array[])[] = [];
  for (const leaf of leaves.slice(0, size)) {
    const appended = appendLeaf(tree, leafHash(leaf));
    tree = appended.tree;
    completed.push(appended.completed);
  }
  const hashOf = (range: LeafRange) =>
    rootOf(
      subtreesOf(range).map((subtree) => {
        const hash = completed[completedBy(subtree)]?.[subtree.level];
        assert.ok(hash);
        return hash;
      }),
    );
  return { tree, hashOf };
}

test('roots are those of RFC 6962', () => {
  const { hashOf } = grown(600);
  const sizes = [...Array(70).keys(), 127, 128, 129, 255, 256, 257, 511, 512, 513, 600];
  for (const size of sizes) {
    const root = hex(expected.root(size));
    assert.equal(hex(rootOf(grown(size).tree.roots)), root, `${size} leaves`);
    assert.equal(hex(hashOf({ start: 0, end: size })), root, `${size} of 600 leaves`);
  }
});

test('proofs are those of RFC 6962', () => {
  const { hashOf } = grown(130);
  for (const size of [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 64, 65, 100, 127, 128, 130]) {
    const root = hex(expected.root(size));
    for (let index = 0; index < size; index += 1) {
      const path = inclusionPath(index, size).map(hashOf);
      assert.deepEqual(path.map(hex), expected.inclusion(index, size).map(hex), `leaf ${index} of ${size}`);
      const proof = { index, size, leaf: leafHash(leaves[index] ?? ''), path };
      assert.equal(hex(rootOfProof(proof)), root, `leaf ${index} of ${size}`);
      assert.notEqual(hex(rootOfProof({ ...proof, leaf: leafHash('another') })), root);
      const older = index + 1;
      const consistency = consistencyPath(older, size).map(hashOf).map(hex);
      assert.deepEqual(consistency, expected.consistency(older, size).map(hex), `${older} to ${size}`);
    }
  }
});
