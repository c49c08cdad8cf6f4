import { sha256 } from './sha256.ts';

/** A Merkle tree over the leaves of a log, as RFC 6962, section 2.1, has it: SHA-256 throughout. */

/** Bytes of a hash. */
export const treeHashBytes = 32;

/** The root of the tree without leaves. */
const emptyRoot: Uint8Array = sha256('');

/** A complete subtree: of level 0 is a leaf, of level n two of level n-1; its place among those of its level, from 0. */
export interface Subtree {
  readonly level: number;
  readonly place: number;
}

/** A tree as far as it is needed to append to it: the roots of its largest complete subtrees, from left to right. */
export interface TreeHead {
  readonly size: number;
  readonly roots: readonly Uint8Array[];
}

/** The tree without leaves. */
export const emptyTree: TreeHead = { size: 0, roots: [] };

/** The hash of a leaf: SHA-256 of a zero byte and its data in UTF-8. */
export function leafHash(data: string): Uint8Array {
  return sha256(`\0${data}`);
}

/** The hash of a node: SHA-256 of a one byte and the hashes of both of its children. */
function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  const data = Buffer.allocUnsafe(1 + 2 * treeHashBytes);
  data[0] = 1;
  data.set(left, 1);
  data.set(right, 1 + treeHashBytes);
  return sha256(data);
}

/**
 * Appends a leaf: the tree with it, and the hashes of all subtrees that it completes, from the leaf itself upwards. With
 * those of all leaves every complete subtree has its hash in one place: see `completedBy`.
 */
export function appendLeaf(
  { size, roots }: TreeHead,
  leaf: Uint8Array,
): { readonly tree: TreeHead; readonly completed: readonly Uint8Array[] } {
  const completed = [leaf];
  const left = roots.slice();
  let root = leaf;
  for (let rest = size; rest % 2 === 1; rest = Math.floor(rest / 2)) {
    root = nodeHash(left.pop() as Uint8Array, root);
    completed.push(root);
  }
  left.push(root);
  return { tree: { size: size + 1, roots: left }, completed };
}

/** The leaf that completes a subtree: the hash is at place `level` of what `appendLeaf` gave for it. */
export function completedBy({ level, place }: Subtree): number {
  return (place + 1) * 2 ** level - 1;
}

/** How many complete subtrees a tree of that size has, of all levels. */
export function completeSubtrees(size: number): number {
  let count = 0;
  for (let ofLevel = size; ofLevel > 0; ofLevel = Math.floor(ofLevel / 2)) count += ofLevel;
  return count;
}

/** The root of a tree of which the roots of the largest complete subtrees are given, from left to right. */
export function rootOf(roots: readonly Uint8Array[]): Uint8Array {
  if (roots.length === 0) return emptyRoot;
  return roots.reduceRight((right, left) => nodeHash(left, right));
}

/** The root of a complete subtree, by the hashes of its leaves in one buffer: their number is a power of two. */
export function subtreeRoot(leaves: Uint8Array): Uint8Array {
  let level = leaves;
  while (level.length > treeHashBytes) {
    const parents = Buffer.alloc(level.length / 2);
    for (let at = 0; at < parents.length; at += treeHashBytes) {
      const left = level.subarray(2 * at, 2 * at + treeHashBytes);
      const right = level.subarray(2 * at + treeHashBytes, 2 * at + 2 * treeHashBytes);
      parents.set(nodeHash(left, right), at);
    }
    level = parents;
  }
  return level;
}

/** Leaves that lie together: from `start`, which a subtree begins with, up to and without `end`. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** The largest complete subtrees that make up a range, from left to right; `rootOf` their hashes is the hash of the range. */
export function subtreesOf({ start, end }: LeafRange): readonly Subtree[] {
  const subtrees: Subtree[] = [];
  for (let at = start; at < end; ) {
    const width = largestPower(end - at);
    subtrees.push({ level: Math.log2(width), place: at / width });
    at += width;
  }
  return subtrees;
}

/**
 * The ranges whose hashes prove that a leaf is in the tree of that size: its sibling first, a child of the root last.
 * `index` is less than `size`.
 */
export function inclusionPath(index: number, size: number): readonly LeafRange[] {
  const path: LeafRange[] = [];
  let [start, end] = [0, size];
  while (end - start > 1) {
    const middle = start + split(end - start);
    if (index < middle) {
      path.push({ start: middle, end });
      end = middle;
    } else {
      path.push({ start, end: middle });
      start = middle;
    }
  }
  return path.reverse();
}

/**
 * The root of the tree of that size, by the hash of a leaf of it and those of its `inclusionPath`: it is the right one if
 * they are those of that leaf.
 */
export function rootOfProof({
  index,
  size,
  leaf,
  path,
}: {
  readonly index: number;
  readonly size: number;
  readonly leaf: Uint8Array;
  readonly path: readonly Uint8Array[];
}): Uint8Array {
  return inclusionPath(index, size).reduce((node, { end }, place) => {
    const sibling = path[place] ?? emptyRoot;
    return end <= index ? nodeHash(sibling, node) : nodeHash(node, sibling);
  }, leaf);
}

/** The ranges whose hashes prove that the tree of size `to` begins with that of size `from`; `from` is at most `to`. */
export function consistencyPath(from: number, to: number): readonly LeafRange[] {
  if (from === 0 || from === to) return [];
  const path: LeafRange[] = [];
  let [start, end] = [0, to];
  // As long as the old tree goes beyond the middle or ends within the left half, one side is the same for both.
  while (from !== end) {
    const middle = start + split(end - start);
    if (from <= middle) {
      path.push({ start: middle, end });
      end = middle;
    } else {
      path.push({ start, end: middle });
      start = middle;
    }
  }
  // Where the old tree is itself this subtree, whoever checks has its root already.
  if (start > 0) path.push({ start, end });
  return path.reverse();
}

/** How many leaves are left of the middle: the largest power of two that is less than the number of leaves, which is 2 or more. */
const split = (leaves: number): number => largestPower(leaves - 1);

/** The largest power of two up to a number, which is 1 or more. */
function largestPower(number: number): number {
  let power = 1;
  while (power * 2 <= number) power *= 2;
  return power;
}
