import { isSame } from '../formats/encoding.ts';
import { mismatch } from '../formats/failure.ts';
import { tileWidth } from '../formats/tile.ts';
import { emptyRoot, nodeHash } from '../formats/tree.ts';
import { fold, hashesOfLevel, type PublishedLog } from './published-log.ts';

/** The right edge of a tree: the last tile of each level. */
export interface Rows {
  all(): readonly (readonly Uint8Array[])[];
  /** Removes and returns the hashes of the leaves of the last, partial tile, which is fetched again. */
  takeLeaves(): readonly Uint8Array[];
  addLeaf(hash: Uint8Array): void;
  /** If the last tile of leaves is full, adds its root to the tile above, and so on upwards. */
  completeTile(place: number): Promise<void>;
  /** Compares the partial tiles above the leaves with those of the log. */
  compareLastTiles(size: number): Promise<void>;
  root(): Uint8Array;
}

/** Continues from the rows of an earlier audit. */
export function createRows(log: PublishedLog, from: readonly (readonly Uint8Array[])[]): Rows {
  const rows = from.map((row) => [...row]);

  function rowOf(level: number): Uint8Array[] {
    while (rows.length <= level) rows.push([]);
    return rows[level] ?? [];
  }

  async function compare(level: number, place: number, row: readonly Uint8Array[]): Promise<void> {
    const tile = await log.tile(level, place, row.length);
    if (row.some((hash, at) => !isSame(hash, tile[at] ?? emptyRoot))) {
      throw mismatch(`tile ${place} of level ${level} does not match the leaves`);
    }
  }

  return {
    all: () => rows.map((row) => [...row]),
    takeLeaves: () => rowOf(0).splice(0),
    addLeaf: (hash) => rowOf(0).push(hash),
    completeTile: async (place) => {
      for (let [level, at] = [0, place]; rowOf(level).length === tileWidth; level += 1) {
        const row = rowOf(level).splice(0);
        // The tiles of level 0 were compared leaf by leaf.
        if (level > 0) await compare(level, at, row);
        rowOf(level + 1).push(fold(row));
        at = Math.floor(at / tileWidth);
      }
    },
    compareLastTiles: async (size) => {
      for (const [level, row] of rows.entries()) {
        const place = Math.floor(hashesOfLevel(level, size) / tileWidth);
        if (level > 0 && row.length > 0) await compare(level, place, row);
      }
    },
    root: () => {
      const subtrees = rows.toReversed().flatMap(completeSubtrees);
      return subtrees.length === 0 ? emptyRoot : subtrees.reduceRight((right, left) => nodeHash(left, right));
    },
  };
}

/** Returns the roots of the largest complete subtrees over a row, from left to right. */
function completeSubtrees(row: readonly Uint8Array[]): readonly Uint8Array[] {
  const subtrees: Uint8Array[] = [];
  for (let [at, width] = [0, tileWidth]; width >= 1; width /= 2) {
    if (row.length - at >= width) {
      subtrees.push(fold(row.slice(at, at + width)));
      at += width;
    }
  }
  return subtrees;
}
