import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { evidenceHash } from '../../src/domain/filing.ts';
import { commitmentTo, recordLeafData } from '../../src/domain/leaf.ts';
import { appendLeaf, emptyTree, leafHash } from '../../src/domain/merkle.ts';
import { toFiling } from '../../src/store/sqlite/filings.ts';
import { type LeafRow, leavesIn } from '../../src/store/sqlite/leaves.ts';

interface FilingRow {
  readonly id: number;
  readonly filing_no: string;
  readonly salt: Buffer;
  readonly leaf_index: number;
  readonly filed_at_s: number;
}

/**
 * Forges the first filing of a data folder as one would who has the database to themselves: drops the triggers, gives it
 * another author and puts it back by a day, recomputes its hash, its leaf and all hashes of the log, and puts the triggers
 * back.
 */
export function forge(dataDir: string): void {
  const client = new Sqlite(join(dataDir, 'artseal.db'), { timeout: 60_000 });
  const triggers = client
    .prepare<[], { name: string; sql: string }>(
      "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' AND tbl_name IN ('filing', 'log_leaf')",
    )
    .all();
  client.transaction(() => {
    for (const { name } of triggers) client.exec(`DROP TRIGGER ${name}`);
    client.exec(
      `UPDATE filing SET author = 'Zhang Daqian', filed_at_s = filed_at_s - 86400,
         timestamp = replace(timestamp, substr(timestamp, 1, 10), date(filed_at_s - 86400, 'unixepoch'))
       WHERE id = (SELECT min(id) FROM filing)`,
    );
    const row = client.prepare('SELECT * FROM filing ORDER BY id LIMIT 1').get() as FilingRow &
      Parameters<typeof toFiling>[0];
    const hash = evidenceHash(
      toFiling({ ...row, filingNo: row.filing_no, price: BigInt(row.price), caller: '' }),
    );
    client.prepare('UPDATE filing SET hash = ? WHERE id = ?').run(hash, row.id);
    const data = recordLeafData({
      ...{ kind: 'FILING', number: row.filing_no, sequence: 1, timeS: row.filed_at_s },
      commitment: commitmentTo(hash, row.salt),
    });
    rewriteTree(client, row.leaf_index, data);
    for (const { sql } of triggers) client.exec(sql);
  })();
  client.close();
}

/** Replaces the data of a leaf, and all hashes of the tree. */
function rewriteTree(client: Sqlite.Database, leafIndex: number, data: string): void {
  const rows = client.prepare<[], LeafRow>('SELECT * FROM log_leaf ORDER BY id').all();
  const update = client.prepare('UPDATE log_leaf SET data = ?, hashes = ? WHERE id = ?');
  let tree = emptyTree;
  for (const row of rows) {
    const leaves = (leavesIn(row) ?? []).map((leaf) => (leaf.index === leafIndex ? data : leaf.data));
    const completed = leaves.flatMap((leaf) => {
      const appended = appendLeaf(tree, leafHash(leaf));
      tree = appended.tree;
      return appended.completed;
    });
    update.run(leaves.join('\n'), Buffer.concat(completed), row.id);
  }
}
