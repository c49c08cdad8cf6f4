import type Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { type LaterRecord, recordHash } from '../../domain/provenance.ts';
import { createEvidenceLog } from './evidence-log.ts';

/** Rows that are read at a time: a connection that reads cannot write meanwhile. */
const rowsAtOnce = 1_000;

/** A row with its place in the order in which it is taken up, and when it was recorded. */
interface Adopted {
  readonly place: number;
  readonly atS: number;
}
type FilingRow = Adopted & { readonly number: string; readonly hash: string };
type SkippedRow = { readonly servedAtS: number } & Readonly<Record<'year' | 'after' | 'through', number>>;
type TransferRow = Adopted & LaterRecord;

/**
 * Takes the records that were stored before there was an evidence log up into it: all filings in their order, then what
 * followed them. The leaf behind them says how many they are, and those behind that which numbers were left out before.
 * Inside the transaction that made the tables.
 */
export function adoptRecords(client: Sqlite.Database): void {
  const log = createEvidenceLog(drizzle({ client }));
  const keepOfFiling = client.prepare('UPDATE filing SET salt = ?, leaf_index = ? WHERE id = ?');
  const keepOfTransfer = client.prepare(
    'UPDATE provenance_record SET salt = ?, leaf_index = ? WHERE filing_no = ? AND position = ?',
  );
  let adopted = 0;
  let newestS = 0;

  function adoptAll<Row extends Adopted>(query: string, adopt: (row: Row) => void): void {
    const select = client.prepare<[number, number], Row>(query);
    for (let from = 0, rows: readonly Row[] = []; ; from = rows.at(-1)?.place ?? from) {
      rows = select.all(from, rowsAtOnce);
      if (rows.length === 0) return;
      for (const row of rows) {
        adopt(row);
        adopted += 1;
        newestS = Math.max(newestS, row.atS);
      }
      log.write();
      log.committed();
    }
  }

  adoptAll<FilingRow>(selectFilings, ({ place, number, atS, hash: evidenceHash }) => {
    const record = { kind: 'FILING', number, sequence: 1, atS, evidenceHash, isAdopted: true } as const;
    const { salt, leafIndex } = log.appendRecord(record);
    keepOfFiling.run(salt, leafIndex, place);
  });
  client.exec(numberTransfers);
  adoptAll<TransferRow>(selectTransfers, ({ place, atS, ...record }) => {
    const { filingNo: number, sequence, event: kind } = record;
    const evidenceHash = recordHash(record);
    const { salt, leafIndex } = log.appendRecord({
      kind,
      number,
      sequence,
      atS,
      evidenceHash,
      isAdopted: true,
    });
    keepOfTransfer.run(salt, leafIndex, number, sequence);
  });
  client.exec('DROP TABLE temp.transfer');
  const gaps = client.prepare<[], SkippedRow>(selectSkipped).all();
  if (adopted === 0 && gaps.length === 0) return;
  // Without records the first gap begins the log.
  if (adopted > 0) log.appendLogEvent('LOG_BEGUN', newestS, { adopted });
  for (const { servedAtS, ...gap } of gaps) log.appendLogEvent('NUMBERS_SKIPPED', servedAtS, gap);
  log.write();
  log.committed();
}

const selectFilings = `SELECT id AS place, filing_no AS number, filed_at_s AS atS, hash FROM filing
  WHERE id > ? ORDER BY id LIMIT ?`;

/** Those of a restoration that is not served yet become leaves when it is. */
const selectSkipped = `SELECT year, after, through, served_at_s AS servedAtS
  FROM number_gap JOIN restoration ON restoration.id = restoration_id
  WHERE kind = 'FILING' AND served_at_s IS NOT NULL ORDER BY served_at_s, year, after`;

/** They are kept in the order of their filings; a leaf is to be behind those that were recorded before. */
const numberTransfers = `CREATE TEMP TABLE transfer AS
  SELECT row_number() OVER (ORDER BY recorded_at_s, filing_no, position) AS place, * FROM provenance_record`;

const selectTransfers = `SELECT place, filing_no AS filingNo, position AS sequence, event, at, recorded_at_s AS atS
  FROM temp.transfer WHERE place > ? ORDER BY place LIMIT ?`;
