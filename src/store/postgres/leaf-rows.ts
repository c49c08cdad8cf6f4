import type pg from 'pg';
import { completedBy, type Subtree } from '../../domain/merkle.ts';
import { dataIn, hashIn, type LeafRow, type Leaves } from '../engine/leaves.ts';
import { Needed } from './needed.ts';

/** A connection. */
export type Queries = Pick<pg.ClientBase, 'query'>;

/** Rows that one query reads, at most: those of two tiles, if each leaf has a row of its own. */
export const rowsPerQuery = 512;

/** Reads rows in their order. */
export const selectRows = {
  name: 'leaf rows',
  text: 'SELECT id, first, data, hashes FROM log_leaf WHERE id >= $1 ORDER BY id LIMIT $2',
};

/** A tile of the tree has so many leaves. */
const tileLeaves = 256;

/** The leaves of the evidence log in memory, as far as they were read in the open transaction. The others are `Needed`. */
export function createLeafRows(queries: Queries) {
  /** Rows by the indexes of their leaves; undefined for one that the table does not have. */
  const rows = new Map<number, LeafRow | undefined>();
  let size = 0;

  function remember(row: LeafRow): void {
    for (let index = row.first; index <= row.id; index += 1) rows.set(index, row);
  }

  /** Reads the rows from the one of a leaf on. */
  async function read(index: number, width: number): Promise<void> {
    const found = await queries.query<LeafRow>({
      ...selectRows,
      values: [index, Math.min(width, rowsPerQuery)],
    });
    for (const row of found.rows) remember(row);
    if (!rows.has(index)) rows.set(index, undefined);
  }

  /** The row of a leaf, of which `width` are wanted from that one on. */
  function rowOf(index: number, width: number): LeafRow | undefined {
    if (index >= size) return undefined;
    if (!rows.has(index)) throw new Needed(`Leaf ${index}`, () => read(index, width));
    return rows.get(index);
  }

  function findHashes({ level, place }: Subtree, width: number): readonly Uint8Array[] {
    const found: Uint8Array[] = [];
    while (found.length < width) {
      const index = completedBy({ level, place: place + found.length });
      const row = rowOf(index, 1 + (width - found.length - 1) * 2 ** level);
      const hash = row && hashIn(row, index, level);
      if (hash === undefined) break;
      found.push(hash);
    }
    return found;
  }

  const leaves: Leaves = {
    size: () => size,
    dataFrom: (from, width) => {
      const found: string[] = [];
      while (found.length < width) {
        const index = from + found.length;
        const row = rowOf(index, width - found.length);
        const all = row && dataIn(row);
        if (row === undefined || all === undefined) break;
        const begin = index - row.first;
        found.push(...all.slice(begin, begin + width - found.length));
      }
      return found;
    },
    findHashes,
  };

  return {
    leaves,
    /** Reads what the tree needs at first: the row of the last leaf of each tile, and the leaves after them. */
    readTiles: async (): Promise<void> => {
      const found = await queries.query<LeafRow>({
        text: `SELECT row.* FROM generate_series($1::bigint - 1, $2::bigint - 1, $1::bigint) AS tile
          CROSS JOIN LATERAL (
            SELECT id, first, data, hashes FROM log_leaf WHERE id >= tile ORDER BY id LIMIT 1
          ) AS row`,
        values: [tileLeaves, size],
      });
      for (const row of found.rows) remember(row);
      if (size % tileLeaves > 0) await read(size - (size % tileLeaves), tileLeaves);
    },
    /** Adds rows that this transaction writes; the table then has so many leaves. */
    add: (added: readonly LeafRow[], leafCount: number): void => {
      for (const row of added) remember(row);
      size = leafCount;
    },
    /** Forgets all rows but these. The table has so many leaves. */
    begin: (leafCount: number, known: readonly LeafRow[]): void => {
      rows.clear();
      size = leafCount;
      for (const row of known) remember(row);
    },
  };
}
