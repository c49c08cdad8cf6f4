import { join } from 'node:path';
import { type FilingRow, forgeIn, leafOfFiling, rewriteTree } from '../../support/forging.ts';

/**
 * Forges the first filing of a data folder as one would who has the database to themselves: drops the triggers, gives it
 * another author and puts it back by a day, recomputes its hash, its leaf and all hashes of the log, and puts the triggers
 * back.
 */
export function forge(dataDir: string): void {
  forgeIn(join(dataDir, 'artseal.db'), (client) => {
    client.exec(
      `UPDATE filing SET author = 'Zhang Daqian', filed_at_s = filed_at_s - 86400,
         timestamp = replace(timestamp, substr(timestamp, 1, 10), date(filed_at_s - 86400, 'unixepoch'))
       WHERE id = (SELECT min(id) FROM filing)`,
    );
    const row = client.prepare('SELECT * FROM filing ORDER BY id LIMIT 1').get() as FilingRow;
    const { hash, data } = leafOfFiling(row);
    client.prepare('UPDATE filing SET hash = ? WHERE id = ?').run(hash, row.id);
    rewriteTree(client, row.leaf_index, data);
  });
}
