import { asc, gte, max, sql } from 'drizzle-orm';
import { completedBy, completeSubtrees, type Subtree, treeHashBytes } from '../../domain/merkle.ts';
import { logLeaf } from './schema.ts';
import { type Database, named, placeholdersFor, prepare } from './statement.ts';

/** Leaves in a row, at most. So many leaves of records fill a page, so that reading a leaf reads one page. */
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

/** As `createLeaves` makes it. */
export type Leaves = ReturnType<typeof createLeaves>;

/** The leaves of the evidence log in its table, and the hashes of its complete subtrees. */
export function createLeaves(database: Database) {
  const { id, first, data, hashes } = logLeaf;
  /** The row of a leaf is the first one that ends with it or with a later leaf. */
  const isFrom = gte(id, sql.placeholder('index'));
  const { insert, selectLast, selectData, selectHashes } = prepare(database, {
    insert: database.insert(logLeaf).values(placeholdersFor(logLeaf)),
    selectLast: database.select(named({ last: max(id) })).from(logLeaf),
    selectData: database.select({ id, first, data }).from(logLeaf).where(isFrom).orderBy(asc(id)),
    selectHashes: database.select({ id, first, hashes }).from(logLeaf).where(isFrom).orderBy(asc(id)),
  });

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

  return {
    /** The number of leaves. */
    size: (): number => (selectLast.get()?.last ?? -1) + 1,
    /** The data of `width` leaves from an index on, as far as they exist. */
    dataFrom: (from: number, width: number): readonly string[] => {
      const found: string[] = [];
      for (const row of selectData.iterate({ index: from })) {
        const all = dataIn(row);
        const begin = from + found.length - row.first;
        if (all === undefined || begin < 0) break;
        found.push(...all.slice(begin, begin + width - found.length));
        if (found.length === width) break;
      }
      return found;
    },
    /** The hashes of `width` complete subtrees from one on, as far as they exist. */
    findHashes,
    /** Appends leaves to the first `size` leaves. */
    append: (size: number, leaves: readonly StoredLeaf[]) => {
      for (let from = 0; from < leaves.length; from += leavesInRow) {
        const row = leaves.slice(from, from + leavesInRow);
        insert.run({
          first: size + from,
          id: size + from + row.length - 1,
          data: row.map((leaf) => leaf.data).join(separator),
          hashes: Buffer.concat(row.flatMap((leaf) => leaf.completed)),
        });
      }
    },
  };
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
function dataIn(row: Omit<LeafRow, 'hashes'>): readonly string[] | undefined {
  const all = row.data.split(separator);
  return all.length === row.id - row.first + 1 ? all : undefined;
}

/** The hash of a level that a leaf completes; undefined if the row does not have the leaf, or has a wrong number of hashes. */
function hashIn(row: HashRow, index: number, level: number): Uint8Array | undefined {
  const { first } = row;
  if (index < first || row.hashes.length !== hashBytes(first, row.id + 1)) return undefined;
  const from = hashBytes(first, index) + level * treeHashBytes;
  return row.hashes.subarray(from, from + treeHashBytes);
}

/** Bytes of the hashes of leaves, from one to the one before another. */
const hashBytes = (from: number, to: number): number =>
  (completeSubtrees(to) - completeSubtrees(from)) * treeHashBytes;
