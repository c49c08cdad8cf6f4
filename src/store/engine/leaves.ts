import { completeSubtrees, type Subtree, treeHashBytes } from '../../domain/merkle.ts';

/** Leaves in a row, at most. So many leaves of records fill a page of SQLite, so that reading a leaf reads one page. */
const leavesInRow = 15;

/** Separates the data of leaves in a row. Canonical JSON never has it. */
const separator = '\n';

/** A leaf as it is stored. */
export interface StoredLeaf {
  readonly data: string;
  /** The hashes of all subtrees that it completes, from the leaf itself upwards. */
  readonly completed: readonly Uint8Array[];
}

/** A row: leaves that were appended together. */
export interface LeafRow {
  /** The index of its first leaf. */
  readonly first: number;
  /** The index of its last leaf. */
  readonly id: number;
  readonly data: string;
  readonly hashes: Buffer;
}

/** A leaf that was found in a row. */
export interface IndexedLeaf {
  readonly index: number;
  readonly data: string;
  /** As `StoredLeaf.completed`, concatenated. */
  readonly hashes: Buffer;
}

type HashRow = Omit<LeafRow, 'data'>;

/** The leaves of the evidence log in the tables, and the hashes of its complete subtrees. */
export interface Leaves {
  /** The number of leaves. */
  size(): number;
  /** The data of `width` leaves from an index on, as far as they exist. */
  dataFrom(from: number, width: number): readonly string[];
  /** The hashes of `width` complete subtrees from one on, as far as they exist. */
  findHashes(first: Subtree, width: number): readonly Uint8Array[];
}

/** The rows of leaves that are appended to the first `size` leaves. */
export function* rowsOf(size: number, leaves: readonly StoredLeaf[]): Generator<LeafRow> {
  for (let from = 0; from < leaves.length; from += leavesInRow) {
    const row = leaves.slice(from, from + leavesInRow);
    yield {
      first: size + from,
      id: size + from + row.length - 1,
      data: row.map((leaf) => leaf.data).join(separator),
      hashes: Buffer.concat(row.flatMap((leaf) => leaf.completed)),
    };
  }
}

/**
 * The leaves of a row; undefined if it has more or fewer than its indexes say. Surplus hashes go to the last leaf, so that a check
 * of that leaf finds them.
 */
export function leavesIn(row: LeafRow): readonly IndexedLeaf[] | undefined {
  const { first } = row;
  return dataIn(row)?.map((data, nth) => {
    const index = first + nth;
    const end = index === row.id ? undefined : hashBytes(first, index + 1);
    return { index, data, hashes: row.hashes.subarray(hashBytes(first, index), end) };
  });
}

/** The data of all leaves of a row; undefined if it has more or fewer than its indexes say. */
export function dataIn(row: Omit<LeafRow, 'hashes'>): readonly string[] | undefined {
  const all = row.data.split(separator);
  return all.length === row.id - row.first + 1 ? all : undefined;
}

/** The hash of a level that a leaf completes; undefined if the row does not have the leaf, or has a wrong number of hashes. */
export function hashIn(row: HashRow, index: number, level: number): Uint8Array | undefined {
  const { first } = row;
  if (index < first || row.hashes.length !== hashBytes(first, row.id + 1)) return undefined;
  const from = hashBytes(first, index) + level * treeHashBytes;
  return row.hashes.subarray(from, from + treeHashBytes);
}

/** Bytes of the hashes of leaves, from one to the one before another. */
const hashBytes = (from: number, to: number): number =>
  (completeSubtrees(to) - completeSubtrees(from)) * treeHashBytes;
