import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

/** Writes TRANSFER records of a filing into the database of a data folder, past the store, until it has so many. */
export function writeTransfers(dataDir: string, filingNo: string, count: number): void {
  const client = new Sqlite(join(dataDir, 'artseal.db'));
  client
    .prepare(
      `WITH RECURSIVE place(n) AS (
         SELECT max(position) + 1 FROM provenance_record WHERE filing_no = :filingNo
         UNION ALL SELECT n + 1 FROM place WHERE n <= :count)
       INSERT INTO provenance_record (filing_no, position, event, at, recorded_at_s)
       SELECT :filingNo, n, 'TRANSFER', '2026-11-21', 1795262400 FROM place`,
    )
    .run({ filingNo, count });
  client.close();
}
