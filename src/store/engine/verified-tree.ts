import {
  inclusionPath,
  leafHash,
  rootOfProof,
  type Subtree,
  subtreeRoot,
  subtreesOf,
  type TreeHead,
  treeHashBytes,
} from '../../domain/merkle.ts';
import { RecordDamaged } from './failure.ts';
import type { Leaves } from './leaves.ts';

/** A tile is a complete subtree of this level: 256 leaves. */
const tileLevel = 8;
const tileLeaves = 2 ** tileLevel;
const tileBytes = tileLeaves * treeHashBytes;

/** Tiles whose leaf hashes stay in memory, 8 KiB each: those of a million leaves. */
const tilesKeptMax = 4_096;

/** As `createVerifiedTree` makes it. */
export type VerifiedTree = ReturnType<typeof createVerifiedTree>;

/**
 * The tree of the evidence log in the memory of this process. It reads each leaf of the tables once, and only grows; the roots of
 * its tiles stay in memory. Nothing is signed before its root was compared with the published checkpoint, so this tree is the
 * published one. Newer leaves are those that this process appended.
 *
 * Threat: somebody with write access to the database file changes a record together with its leaf and their hashes.
 */
export function createVerifiedTree(leaves: Leaves) {
  const tiles = createTiles(leaves);
  /** The hashes of the leaves after the last complete tile. */
  let tail: Uint8Array = new Uint8Array(tileBytes);
  let size = 0;
  /** Size and tail as of the last commit; undefined while nothing was appended since. */
  let durable: { readonly size: number; readonly tail: Uint8Array } | undefined;

  function addLeaf(hash: Uint8Array, tileRoot: Uint8Array | undefined): void {
    tail.set(hash, (size % tileLeaves) * treeHashBytes);
    size += 1;
    if (size % tileLeaves !== 0) return;
    tiles.keep(tiles.count(), tail);
    tiles.add(tileRoot ?? subtreeRoot(tail));
    tail = new Uint8Array(tileBytes);
  }

  const hashesOfTile = (tile: number) => (tile === tiles.count() ? tail : tiles.hashesOf(tile));

  function hashOf({ level, place }: Subtree): Uint8Array {
    const missing = () => damagedTree(`the hash of subtree ${place} of level ${level} is not there`);
    if (level >= tileLevel) return tiles.root(level - tileLevel, place) ?? refuse(missing());
    const tile = Math.floor((place * 2 ** level) / tileLeaves);
    const width = 2 ** level * treeHashBytes;
    const from = (place * width) % tileBytes;
    const isThere = (place + 1) * 2 ** level <= size;
    const hashes = isThere ? hashesOfTile(tile) : undefined;
    if (hashes === undefined) throw missing();
    return subtreeRoot(hashes.subarray(from, from + width));
  }

  return {
    size: (): number => size,
    /** Without the leaves of the open transaction. */
    durableSize: (): number => durable?.size ?? size,
    /** Reads the leaves in the tables that it does not have. Throws RecordDamaged if the tables have fewer than the tree. */
    load: () => {
      const stored = leaves.size();
      if (stored < size) throw damagedTree(`it had ${size} leaves, and the database has ${stored}`);
      while (size < stored) {
        const isWholeTile = size % tileLeaves === 0 && stored - size >= tileLeaves;
        const subtree = isWholeTile
          ? { level: tileLevel, place: size / tileLeaves }
          : { level: 0, place: size };
        const [hash = refuse(damagedTree(`leaf ${size} is not there`))] = leaves.findHashes(subtree, 1);
        if (isWholeTile) {
          tiles.add(hash);
          size += tileLeaves;
        } else addLeaf(hash, undefined);
      }
    },
    /** Appends a leaf: the hashes of all subtrees that it completes, from the leaf itself upwards. */
    append: (completed: readonly Uint8Array[]) => {
      durable ??= { size, tail: tail.slice() };
      const [leaf = refuse(new Error('A leaf completes itself.'))] = completed;
      addLeaf(leaf, completed[tileLevel]);
    },
    /** The hash of a complete subtree. Throws RecordDamaged if the tables do not have its leaves. */
    hashOf,
    /** Whether these data are the leaf at an index. */
    hasLeaf: (index: number, data: string): boolean => {
      if (index >= size) return false;
      const hash = leafHash(data);
      const hashes = hashesOfTile(Math.floor(index / tileLeaves));
      if (hashes === undefined) return tiles.isProved(index, hash);
      const from = (index % tileLeaves) * treeHashBytes;
      return equal(hash, hashes.subarray(from, from + treeHashBytes));
    },
    head: (): TreeHead => ({ size, roots: subtreesOf({ start: 0, end: size }).map(hashOf) }),
    /** Keeps the leaves that were appended since the last call. */
    committed: () => {
      durable = undefined;
    },
    /** Drops them. */
    rolledBack: () => {
      if (durable === undefined) return;
      ({ size, tail } = durable);
      durable = undefined;
      tiles.truncate(Math.floor(size / tileLeaves));
    },
  };
}

/** The complete tiles of a tree: their roots in memory, and leaf hashes that were compared with them. */
function createTiles(leaves: Leaves) {
  /** The hashes of the complete subtrees from tiles upwards, a list a level. */
  const levels: Uint8Array[][] = [[]];
  /** The leaf hashes of tiles, the oldest one first. */
  const kept = new Map<number, Uint8Array>();

  function keep(tile: number, hashes: Uint8Array): void {
    kept.set(tile, hashes);
    const [oldest] = kept.size > tilesKeptMax ? kept.keys() : [];
    if (oldest !== undefined) kept.delete(oldest);
  }

  return {
    count: (): number => levels[0]?.length ?? 0,
    root: (level: number, place: number) => levels[level]?.[place],
    keep,
    /** Adds the root of a tile, and the hashes of the subtrees above that it completes. */
    add: (root: Uint8Array): void => {
      let hash = root;
      for (let level = 0; ; level += 1) {
        const row = levels[level] ?? [];
        levels[level] = row;
        // A copy: the hash may be a part of a larger buffer, which would stay in memory with it.
        row.push(new Uint8Array(hash));
        const left = row.at(-2);
        if (row.length % 2 === 1 || left === undefined) return;
        hash = subtreeRoot(Buffer.concat([left, hash]));
      }
    },
    /** The hashes of the leaves of a tile; undefined if the hashes in the tables do not have its root. */
    hashesOf: (tile: number): Uint8Array | undefined => {
      const known = kept.get(tile);
      if (known !== undefined) return known;
      const hashes = Buffer.concat(leaves.findHashes({ level: 0, place: tile * tileLeaves }, tileLeaves));
      const root = levels[0]?.[tile];
      if (root === undefined || hashes.length !== tileBytes || !equal(subtreeRoot(hashes), root))
        return undefined;
      keep(tile, hashes);
      return hashes;
    },
    /** Whether a leaf leads to the root of its tile by the other hashes in the tables, of which some may be damaged. */
    isProved: (index: number, leaf: Uint8Array): boolean => {
      const tile = Math.floor(index / tileLeaves);
      const inTile = index % tileLeaves;
      const path = inclusionPath(inTile, tileLeaves).flatMap(({ start, end }) => {
        const width = end - start;
        const subtree = { level: Math.log2(width), place: (tile * tileLeaves + start) / width };
        return leaves.findHashes(subtree, 1);
      });
      const root = levels[0]?.[tile];
      return root !== undefined && equal(rootOfProof({ index: inTile, size: tileLeaves, leaf, path }), root);
    },
    /** Removes the tiles after the first ones. */
    truncate: (count: number): void => {
      for (const [level, row] of levels.entries()) row.length = Math.floor(count / 2 ** level);
      for (const tile of kept.keys()) if (tile >= count) kept.delete(tile);
    },
  };
}

const equal = (one: Uint8Array, other: Uint8Array): boolean => Buffer.compare(one, other) === 0;

/** The error of a log whose tables were changed. */
export const damagedTree = (what: string): RecordDamaged =>
  new RecordDamaged(
    `The evidence log is not what it was: ${what}. See docs/operate/incidents/record-changed.md.`,
  );

function refuse(error: Error): never {
  throw error;
}
