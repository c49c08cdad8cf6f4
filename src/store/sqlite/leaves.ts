import { asc, gte, max, sql } from 'drizzle-orm';
import { completedBy, completeSubtrees, type Subtree, treeHashBytes } from '../../domain/merkle.ts';
import type { Database } from './database.ts';
import { logLeaf } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';

/** Leaves that share a row, at most: those of records fill a page then, and whoever reads one reads that page alone. */
const leavesInRow = 15;

/** What stands between the data of leaves that share a row: no canonical JSON has it. */
const separator = '\n';

/** A leaf as it is stored. */
export interface StoredLeaf {
  readonly data: string;
  /** The hashes of all subtrees that it completes, from the leaf itself upwards. */
  readonly completed: readonly Uint8Array[];
}

/** Leaves that were appended together, without their hashes; the id is the index of the last of them. */
interface DataRow {
  readonly id: number;
  readonly data: string;
}

/** The same with their hashes alone. */
interface HashRow {
  readonly id: number;
  readonly hashes: Buffer;
}

/** A row of the table. */
export type LeafRow = DataRow & HashRow;

/** A leaf that was found in a row. */
export interface IndexedLeaf {
  readonly index: number;
  readonly data: string;
  /** As `StoredLeaf.completed`, one behind the other. */
  readonly hashes: Buffer;
}

/** The leaves of the evidence log in its table, and the hashes of its complete subtrees. */
export interface Leaves {
  /** How many there are. */
  size(): number;
  /** The data of `width` leaves from one on, as far as they are there. */
  dataFrom(index: number, width: number): readonly string[];
  /** The hash of a leaf; undefined if it is not there. */
  findHash(index: number): Uint8Array | undefined;
  /** The hash of a complete subtree of the tree. */
  hashOf(subtree: Subtree): Uint8Array;
  /** The hashes of `width` of them from one on, one behind the other. */
  hashesFrom(first: Subtree, width: number): Uint8Array;
  /** Appends leaves to the `size` that are there. */
  append(size: number, leaves: readonly StoredLeaf[]): void;
}

/** Prepares the statements of the table. */
export function createLeaves(database: Database): Leaves {
  const { id, data, hashes } = logLeaf;
  /** The row of a leaf is the first one that ends with it or with one behind it. */
  const isFrom = gte(id, sql.placeholder('index'));
  const insert = prepareRaw(database, database.insert(logLeaf).values(placeholdersFor(logLeaf)));
  const selectLast = prepareRaw<{ last: number | null }>(
    database,
    database.select({ last: max(id).as('last') }).from(logLeaf),
  );
  const selectData = prepareRaw<DataRow>(
    database,
    database.select({ id, data }).from(logLeaf).where(isFrom).orderBy(asc(id)),
  );
  const selectHashes = prepareRaw<HashRow>(
    database,
    database.select({ id, hashes }).from(logLeaf).where(isFrom).orderBy(asc(id)),
  );

  /** The hashes of `width` subtrees from one on, as far as they are there. */
  function findHashes({ level, place }: Subtree, width: number): readonly Uint8Array[] {
    const found: Uint8Array[] = [];
    let row: HashRow | undefined;
    while (found.length < width) {
      const index = completedBy({ level, place: place + found.length });
      if (row === undefined || row.id < index) row = selectHashes.get({ index });
      const hash = row && hashIn(row, index, level);
      if (hash === undefined) break;
      found.push(hash);
    }
    return found;
  }

  function hashesFrom(first: Subtree, width: number): readonly Uint8Array[] {
    const found = findHashes(first, width);
    if (found.length === width) return found;
    const { level, place } = first;
    throw new Error(`The evidence log lacks the hash of subtree ${place + found.length} of level ${level}.`);
  }

  return {
    size: () => (selectLast.get({})?.last ?? -1) + 1,
    dataFrom: (from, width) => {
      const found: string[] = [];
      while (found.length < width) {
        const index = from + found.length;
        const row = selectData.get({ index });
        if (row === undefined) break;
        const { first, data } = dataIn(row);
        if (index < first) break;
        found.push(...data.slice(index - first, index - first + width - found.length));
      }
      return found;
    },
    findHash: (index) => findHashes({ level: 0, place: index }, 1)[0],
    hashOf: (subtree) => hashesFrom(subtree, 1)[0] as Uint8Array,
    hashesFrom: (first, width) => Buffer.concat(hashesFrom(first, width)),
    append: (size, leaves) => {
      for (let from = 0; from < leaves.length; from += leavesInRow) {
        const row = leaves.slice(from, from + leavesInRow);
        insert.run({
          id: size + from + row.length - 1,
          data: row.map((leaf) => leaf.data).join(separator),
          hashes: Buffer.concat(row.flatMap((leaf) => leaf.completed)),
        });
      }
    },
  };
}

/** The leaves of a row; the hashes of the last one are all that are left, whatever they are. */
export function leavesIn(row: LeafRow): readonly IndexedLeaf[] {
  const { first, data } = dataIn(row);
  const placeOf = (index: number) => (completeSubtrees(index) - completeSubtrees(first)) * treeHashBytes;
  return data.map((each, nth) => {
    const index = first + nth;
    const hashes = row.hashes.subarray(placeOf(index), index === row.id ? undefined : placeOf(index + 1));
    return { index, data: each, hashes };
  });
}

/** The index of the first leaf of a row, and the data of all that are in it. */
function dataIn({ id, data }: DataRow): { readonly first: number; readonly data: readonly string[] } {
  const all = data.split(separator);
  return { first: id - all.length + 1, data: all };
}

/** The hash of that level that a leaf completes; undefined if the leaf is before those of the row. */
function hashIn({ id, hashes }: HashRow, index: number, level: number): Uint8Array | undefined {
  // The hashes of the leaf and of those behind it end the row.
  const ending = completeSubtrees(id + 1) - completeSubtrees(index);
  const from = hashes.length + (level - ending) * treeHashBytes;
  return from < 0 ? undefined : hashes.subarray(from, from + treeHashBytes);
}
