import { sha256 } from './sha256.ts';

/** The Merkle tree of RFC 6962, section 2.1, with SHA-256. */

/** Bytes of a hash. */
export const treeHashBytes = 32;

/** The root of the tree without leaves. */
const emptyRoot: Uint8Array = sha256('');

/** A complete subtree: level 0 is a leaf, level n has two of level n-1. `place` counts those of its level, from 0. */
export interface Subtree {
  readonly level: number;
  readonly place: number;
}

/** What appending to a tree needs: its size and the roots of its largest complete subtrees, from left to right. */
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
 * Appends a leaf. Returns the new tree and the hashes of the subtrees that the leaf completes, from the leaf upwards. Each complete
 * subtree is completed by one leaf: see `completedBy`.
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

/** The index of the leaf that completes a subtree. Its hash is `completed[level]` of `appendLeaf`. */
export function completedBy({ level, place }: Subtree): number {
  return (place + 1) * 2 ** level - 1;
}

/** The number of complete subtrees of all levels in a tree of that size. */
export function completeSubtrees(size: number): number {
  let count = 0;
  for (let ofLevel = size; ofLevel > 0; ofLevel = Math.floor(ofLevel / 2)) count += ofLevel;
  return count;
}

/** The root of a tree, from the roots of its largest complete subtrees, from left to right. */
export function rootOf(roots: readonly Uint8Array[]): Uint8Array {
  if (roots.length === 0) return emptyRoot;
  return roots.reduceRight((right, left) => nodeHash(left, right));
}

/** The root of a complete subtree, from the concatenated hashes of its leaves. */
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

/** The leaves from `start`, where a subtree begins, to before `end`. */
export interface LeafRange {
  readonly start: number;
  readonly end: number;
}

/** The largest complete subtrees of a range, from left to right. `rootOf` their hashes is the hash of the range. */
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

/** Computes the root of the tree of that size from the hash of a leaf and the hashes of its `inclusionPath`. */
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
  // Until the old tree ends at the end of a subtree, one half is the same for both trees or only in the new one.
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
  // If the old tree is this whole subtree, the verifier knows its root.
  if (start > 0) path.push({ start, end });
  return path.reverse();
}

/** The number of leaves in the left half: the largest power of two below `leaves`, which is 2 or more. */
const split = (leaves: number): number => largestPower(leaves - 1);

/** The largest power of two up to a number, which is 1 or more. */
function largestPower(number: number): number {
  let power = 1;
  while (power * 2 <= number) power *= 2;
  return power;
}
