import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
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

const sha256 = (...parts: readonly (string | Uint8Array)[]): Buffer => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest();
};
const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString('hex');

/** The largest power of two less than n. */
function k(n: number): number {
  let power = 1;
  while (power * 2 < n) power *= 2;
  return power;
}

/** MTH of RFC 6962, section 2.1. */
function naiveRoot(leaves: readonly string[]): Buffer {
  if (leaves.length === 0) return sha256('');
  if (leaves.length === 1) return sha256('\0', leaves[0] as string);
  const at = k(leaves.length);
  return sha256('\x01', naiveRoot(leaves.slice(0, at)), naiveRoot(leaves.slice(at)));
}

/** PATH of section 2.1.1. */
function naivePath(m: number, leaves: readonly string[]): Buffer[] {
  if (leaves.length === 1) return [];
  const at = k(leaves.length);
  return m < at
    ? [...naivePath(m, leaves.slice(0, at)), naiveRoot(leaves.slice(at))]
    : [...naivePath(m - at, leaves.slice(at)), naiveRoot(leaves.slice(0, at))];
}

/** SUBPROOF of section 2.1.2. */
function naiveSubproof(m: number, leaves: readonly string[], isWhole: boolean): Buffer[] {
  if (m === leaves.length) return isWhole ? [] : [naiveRoot(leaves)];
  const at = k(leaves.length);
  return m <= at
    ? [...naiveSubproof(m, leaves.slice(0, at), isWhole), naiveRoot(leaves.slice(at))]
    : [...naiveSubproof(m - at, leaves.slice(at), false), naiveRoot(leaves.slice(0, at))];
}

/** Builds a tree, and a function that returns the hash of a range. */
function grown(leaves: readonly string[]) {
  let tree: TreeHead = emptyTree;
  const completed: (readonly Uint8Array[])[] = [];
  for (const leaf of leaves) {
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

const leavesOf = (count: number) => Array.from({ length: count }, (_, at) => `leaf ${at}`);

test('roots are those of a naive recursion', () => {
  const { hashOf } = grown(leavesOf(600));
  const sizes = [...Array(70).keys(), 127, 128, 129, 255, 256, 257, 511, 512, 513, 600];
  for (const size of sizes) {
    const expected = hex(naiveRoot(leavesOf(size)));
    assert.equal(hex(rootOf(grown(leavesOf(size)).tree.roots)), expected, `${size} leaves`);
    assert.equal(hex(hashOf({ start: 0, end: size })), expected, `${size} of 600 leaves`);
  }
});

test('proofs are those of a naive recursion', () => {
  const leaves = leavesOf(130);
  const { hashOf } = grown(leaves);
  for (const size of [1, 2, 3, 4, 5, 7, 8, 9, 31, 33, 64, 65, 100, 127, 128, 130]) {
    const some = leaves.slice(0, size);
    const root = hex(naiveRoot(some));
    for (let index = 0; index < size; index += 1) {
      const path = inclusionPath(index, size).map(hashOf).map(hex);
      assert.deepEqual(path, naivePath(index, some).map(hex), `leaf ${index} of ${size}`);
      const proof = {
        index,
        size,
        leaf: leafHash(leaves[index] ?? ''),
        path: inclusionPath(index, size).map(hashOf),
      };
      assert.equal(hex(rootOfProof(proof)), root, `leaf ${index} of ${size}`);
      assert.notEqual(hex(rootOfProof({ ...proof, leaf: leafHash('another') })), root);
      const consistency = consistencyPath(index + 1, size)
        .map(hashOf)
        .map(hex);
      assert.deepEqual(consistency, naiveSubproof(index + 1, some, true).map(hex), `${index + 1} to ${size}`);
    }
  }
});

test('roots are those of other implementations of RFC 6962', () => {
  // The leaves and hashes in the tests of Certificate Transparency implementations.
  const leaves = [
    '',
    '00',
    '10',
    '2021',
    '3031',
    '40414243',
    '5051525354555657',
    '606162636465666768696a6b6c6d6e6f',
  ].map((text) => Buffer.from(text, 'hex').toString('latin1'));
  assert.ok(leaves.every((leaf) => /^[\0-\x7f]*$/.test(leaf)));
  const roots = [
    '6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d',
    'fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125',
    'aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77',
    'd37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7',
    '4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4',
    '76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef',
    'ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c',
    '5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328',
  ];
  for (const [at, root] of roots.entries()) {
    assert.equal(hex(rootOf(grown(leaves.slice(0, at + 1)).tree.roots)), root);
  }
});
