import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { eventually } from './eventually.ts';

/** The longest wait for a commit of the store that is open. */
const patienceMs = 60_000;

/** Writes TRANSFER records of a filing into the database of a data folder, past the store, until it has so many. */
export async function writeTransfers(dataDir: string, filingNo: string, count: number): Promise<void> {
  // A store of this process ends its commit in a later turn: to wait for that here would wait for ever.
  const client = new Sqlite(join(dataDir, 'artseal.db'), { timeout: 0 });
  const statement = client.prepare(
    `WITH RECURSIVE place(n) AS (
       SELECT coalesce(max(position), 1) + 1 FROM provenance_record WHERE filing_no = :filingNo
       UNION ALL SELECT n + 1 FROM place WHERE n <= :count)
     INSERT INTO provenance_record (filing_no, position, event, at, recorded_at_s)
     SELECT :filingNo, n, 'TRANSFER', '2026-11-21', 1795262400 FROM place`,
  );
  try {
    await eventually('the database is free', patienceMs, () => {
      try {
        statement.run({ filingNo, count });
        return true;
      } catch (error) {
        if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY') return false;
        throw error;
      }
    });
  } finally {
    client.close();
  }
}
