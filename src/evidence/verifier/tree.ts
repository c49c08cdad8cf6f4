import { sha256 } from '@noble/hashes/sha2.js';
import { concatBytes } from '@noble/hashes/utils.js';
import { isSame } from './encoding.ts';

/**
 * Merkle trees of RFC 6962, section 2.1, as far as somebody has to know them who checks proofs: the algorithms of RFC 9162,
 * sections 2.1.3.2 and 2.1.4.2. Sizes and indexes are up to 2^53-1, so halves are taken by division, not by shifts.
 */

/** Bytes of a hash. */
export const hashBytes = 32;

/** The most hashes that a proof can have: levels of the largest tree. */
export const proofHashesMax = 63;

/** SHA-256 of these bytes one behind the other. */
export function sha256Of(...parts: readonly Uint8Array[]): Uint8Array {
  return sha256(concatBytes(...parts));
}

const leafPrefix = Uint8Array.of(0);
const nodePrefix = Uint8Array.of(1);

/** The root of the tree without leaves. */
export const emptyRoot: Uint8Array = sha256Of();

/** The hash of a leaf. */
export function leafHash(data: Uint8Array): Uint8Array {
  return sha256Of(leafPrefix, data);
}

/** The hash of a node above two others. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  return sha256Of(nodePrefix, left, right);
}

const isOdd = (number: number): boolean => number % 2 === 1;
const half = (number: number): number => Math.floor(number / 2);

/** Whether `path` proves that the leaf with that hash has that index in the tree of that size and root. */
export function isIncluded(
  leaf: Uint8Array,
  index: number,
  size: number,
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (index >= size) return false;
  let [node, last, hash] = [index, size - 1, leaf];
  for (const sibling of path) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      hash = nodeHash(sibling, hash);
      while (!isOdd(node) && node > 0) [node, last] = [half(node), half(last)];
    } else {
      hash = nodeHash(hash, sibling);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && isSame(hash, root);
}

/** A tree by its number of leaves and its root. */
export interface Tree {
  readonly size: number;
  readonly root: Uint8Array;
}

/** Whether `path` proves that the newer tree begins with the older one, whose size is at most that of the newer. */
export function isConsistent(older: Tree, newer: Tree, path: readonly Uint8Array[]): boolean {
  if (older.size > newer.size) return false;
  if (older.size === newer.size) return path.length === 0 && isSame(older.root, newer.root);
  if (older.size === 0) return path.length === 0 && isSame(older.root, emptyRoot);
  let [node, last] = [older.size - 1, newer.size - 1];
  while (isOdd(node)) [node, last] = [half(node), half(last)];
  // Where the older tree is complete, its root is itself the first node, and the path leaves it out.
  const [first, ...others] = node === 0 ? [older.root, ...path] : path;
  if (first === undefined) return false;
  let [olderHash, newerHash] = [first, first];
  for (const hash of others) {
    if (last === 0) return false;
    if (isOdd(node) || node === last) {
      olderHash = nodeHash(hash, olderHash);
      newerHash = nodeHash(hash, newerHash);
      while (!isOdd(node) && node > 0) [node, last] = [half(node), half(last)];
    } else {
      newerHash = nodeHash(newerHash, hash);
    }
    [node, last] = [half(node), half(last)];
  }
  return last === 0 && isSame(olderHash, older.root) && isSame(newerHash, newer.root);
}
