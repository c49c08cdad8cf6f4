import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { timeOfLeaf } from '../../src/domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash } from '../../src/domain/merkle.ts';
import { type LeafRow, leavesIn } from '../../src/store/sqlite/leaves.ts';

/** The time of leaves in an empty log, Unix seconds. */
const firstS = 1_795_262_400;

/** The data of the leaf of some record. */
const leafData = (index: number, timeS: number): string =>
  `{"commitment":"${String(index).padStart(64, '0')}","kind":"FILING","number":"AS-2026-000000","sequence":1,"time":${timeS},"version":1}`;

/**
 * Fills the log of a closed store up to so many leaves without the store, which needs a record for each. Returns the data
 * of all leaves.
 */
export function writeLeaves(dataDir: string, size: number): readonly string[] {
  const client = new Sqlite(join(dataDir, 'artseal.db'));
  try {
    const rows = client.prepare<[], LeafRow>('SELECT * FROM log_leaf ORDER BY id').all();
    const leaves = rows.flatMap((row) => (leavesIn(row) ?? []).map(({ data }) => data));
    const insert = client.prepare('INSERT INTO log_leaf (id, first, data, hashes) VALUES (?, ?, ?, ?)');
    let tree = emptyTree;
    for (const data of leaves) tree = appendLeaf(tree, leafHash(data)).tree;
    const last = leaves.at(-1);
    const timeS = last === undefined ? firstS : timeOfLeaf(last);
    client.transaction(() => {
      for (let index = leaves.length; index < size; index += 1) {
        const data = leafData(index, timeS);
        const appended = appendLeaf(tree, leafHash(data));
        insert.run(index, index, data, Buffer.concat(appended.completed));
        leaves.push(data);
        tree = appended.tree;
      }
    })();
    return leaves;
  } finally {
    client.close();
  }
}
