import { count, eq, sql } from 'drizzle-orm';
import { dateOf } from '../../domain/calendar.ts';
import { type LaterRecord, recordHash } from '../../domain/provenance.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { EvidenceLog } from './evidence-log.ts';
import type { Outbox } from './outbox.ts';
import type { RecordCheck } from './record-check.ts';
import { filing, provenanceRecord } from './schema.ts';
import { type Database, named, placeholdersFor, prepare } from './statement.ts';

/** A stored record. */
interface StoredRecord extends LaterRecord {
  /** Unix seconds; the time of its leaf. */
  readonly recordedAtS: number;
  readonly salt: Buffer | null;
  readonly leafIndex: number;
}

/** The TRANSFER records of filings. */
export type ProvenanceRecords = ReturnType<typeof createProvenanceRecords>;

export function createProvenanceRecords(
  database: Database,
  log: EvidenceLog,
  outbox: Outbox,
  check: RecordCheck,
) {
  const { filingNo, position: sequence, event, at, recordedAtS, salt, leafIndex } = provenanceRecord;
  const ofFiling = eq(filingNo, sql.placeholder('filingNo'));
  const { insertTransfer, selectCount, select, selectCaller } = prepare(database, {
    insertTransfer: database.insert(provenanceRecord).values(placeholdersFor(provenanceRecord)),
    // All are counted: the position of the last one says nothing of one that is missing before it.
    selectCount: database
      .select(named({ count: count() }))
      .from(provenanceRecord)
      .where(ofFiling),
    // Sorted below: with ORDER BY, SQLite prepares the statement for each execution, which takes longest.
    select: database
      .select(named({ filingNo, sequence, event, at, recordedAtS, salt, leafIndex }))
      .from(provenanceRecord)
      .where(ofFiling),
    selectCaller: database
      .select(named({ callerId: filing.callerId }))
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  });

  function requireCaller(filingNo: string): number {
    const row = selectCaller.get({ filingNo });
    if (row !== undefined) return row.callerId;
    check.absence(filingNo);
    throw new Error(`There is no filing ${filingNo}.`);
  }

  /** The number of TRANSFER records of a filing. Throws RecordDamaged if a record is missing. */
  function transfersOf(filingNo: string): number {
    const count = selectCount.get({ filingNo })?.count ?? 0;
    check.transferCount(filingNo, count);
    return count;
  }

  return {
    /** Appends a TRANSFER record and adds its event. Runs inside an effect. Throws RecordDamaged like `transfersOf`. */
    appendTransfer: (filingNo: string, { atMs, timestamp }: BusinessTime): void => {
      const clockS = Math.floor(atMs / 1000);
      // The time of its leaf, which is never before the newest one: a clock that was set back makes nothing older.
      const recordedAtS = Math.max(clockS, log.newestS() ?? clockS);
      const position = transfersOf(filingNo) + 2;
      const record = { event: 'TRANSFER', at: dateOf(timestamp) } as const;
      const evidenceHash = recordHash({ ...record, filingNo, sequence: position });
      const leaf = { kind: 'TRANSFER', number: filingNo, sequence: position, atS: recordedAtS } as const;
      const logged = log.appendRecord({ ...leaf, evidenceHash });
      insertTransfer.run({ ...record, ...logged, filingNo, position, recordedAtS });
      const callerId = requireCaller(filingNo);
      outbox.add({ type: 'provenance.transferred', callerId, atMs, filingNo });
    },
    /** Throws RecordDamaged if the filing or one of its TRANSFER records is missing. */
    requireWhole: (filingNo: string): void => {
      requireCaller(filingNo);
      transfersOf(filingNo);
    },
    transfersOf,
    /** The records of a filing after its source record, oldest first, with the salts and indexes of their leaves. */
    of: (filingNo: string): StoredRecord[] =>
      select.all({ filingNo }).sort((one, other) => one.sequence - other.sequence),
  };
}
