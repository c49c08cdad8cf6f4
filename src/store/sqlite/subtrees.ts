import { asc, between, eq, sql } from 'drizzle-orm';
import { completedBy, type Subtree, treeHashBytes } from '../../domain/merkle.ts';
import type { Database } from './database.ts';
import { logLeaf } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** Finds the hashes of complete subtrees, each in the row of the leaf that completes it. */
export interface Subtrees {
  /** The hash of a complete subtree of the tree. */
  hashOf(subtree: Subtree): Uint8Array;
  /** The hashes of `width` of them, from one on, one behind the other. */
  hashesFrom(first: Subtree, width: number): Uint8Array;
}

/** Prepares the statements that find them. */
export function createSubtrees(database: Database): Subtrees {
  const columns = {
    hash: sql<Buffer>`substr(${logLeaf.hashes}, ${sql.placeholder('from')}, ${treeHashBytes})`.as('hash'),
  };
  const selectOne = prepareRaw<{ hash: Buffer }>(
    database,
    database
      .select(columns)
      .from(logLeaf)
      .where(eq(logLeaf.id, sql.placeholder('id'))),
  );
  const selectLeaves = prepareRaw<{ hash: Buffer }>(
    database,
    database
      .select(columns)
      .from(logLeaf)
      .where(between(logLeaf.id, sql.placeholder('first'), sql.placeholder('last')))
      .orderBy(asc(logLeaf.id)),
  );
  /** The place of the hash in its row, as SQL counts. */
  const from = ({ level }: Subtree) => level * treeHashBytes + 1;

  function hashOf(subtree: Subtree): Uint8Array {
    const row = selectOne.get({ id: completedBy(subtree), from: from(subtree) });
    if (row === undefined || row.hash.length !== treeHashBytes) {
      throw new Error(
        `The evidence log lacks the hash of subtree ${subtree.place} of level ${subtree.level}.`,
      );
    }
    return row.hash;
  }

  return {
    hashOf,
    hashesFrom: (first, width) => {
      const { level, place } = first;
      if (level > 0)
        return Buffer.concat(
          Array.from({ length: width }, (_, nth) => hashOf({ level, place: place + nth })),
        );
      const rows = selectLeaves.all({ first: place, last: place + width - 1, from: from(first) });
      return Buffer.concat(rows.map(({ hash }) => hash));
    },
  };
}
