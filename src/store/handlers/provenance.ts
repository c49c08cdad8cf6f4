import { count, eq, sql } from 'drizzle-orm';
import { dateOf } from '../../domain/calendar.ts';
import { commitmentTo, saltBytes } from '../../domain/leaf.ts';
import { recordHash } from '../../domain/provenance.ts';
import { timeOfRecord } from '../engine/filings.ts';
import type { EngineParts } from '../engine/parts.ts';
import { filing, provenanceRecord } from '../engine/schema.ts';
import { named, placeholdersFor, prepare } from '../engine/statement.ts';
import { type BusinessTime, realTime } from '../filing-commands.ts';

/** The TRANSFER records of filings. */
export type ProvenanceRecords = ReturnType<typeof createProvenanceRecords>;

export function createProvenanceRecords({
  database,
  log,
  outbox,
  check,
}: Pick<EngineParts, 'database' | 'log' | 'outbox' | 'check'>) {
  const ofFiling = eq(provenanceRecord.filingNo, sql.placeholder('filingNo'));
  const { insertTransfer, selectCount, selectCaller } = prepare(database, {
    insertTransfer: database.insert(provenanceRecord).values(placeholdersFor(provenanceRecord)),
    // All are counted: the position of the last one says nothing of one that is missing before it.
    selectCount: database
      .select(named({ count: count() }))
      .from(provenanceRecord)
      .where(ofFiling),
    selectCaller: database
      .select(named({ callerId: filing.callerId }))
      .from(filing)
      .where(eq(filing.filingNo, sql.placeholder('filingNo'))),
  });

  async function requireCaller(filingNo: string): Promise<number> {
    const row = await selectCaller.get({ filingNo });
    if (row !== undefined) return row.callerId;
    await check.absence(filingNo);
    throw new Error(`There is no filing ${filingNo}.`);
  }

  /** The number of TRANSFER records of a filing. Throws RecordDamaged if a record is missing. */
  async function transfersOf(filingNo: string): Promise<number> {
    const count = (await selectCount.get({ filingNo }))?.count ?? 0;
    await check.transferCount(filingNo, count);
    return count;
  }

  return {
    /** Appends a TRANSFER record and adds its event. Runs inside an effect. Throws RecordDamaged like `transfersOf`. */
    appendTransfer: async (filingNo: string, confirmedAt: BusinessTime): Promise<void> => {
      const newestS = await log.newestS();
      const at = timeOfRecord(confirmedAt, newestS);
      const { atMs, timestamp } = realTime(at);
      const clockS = Math.floor(atMs / 1000);
      // The time of its leaf, which is never before the newest one: a clock that was set back makes nothing older.
      const recordedAtS = Math.max(clockS, newestS ?? clockS);
      const position = (await transfersOf(filingNo)) + 2;
      const record = { event: 'TRANSFER', at: dateOf(timestamp) } as const;
      const hash = recordHash({ ...record, filingNo, sequence: position });
      const logged = await log.appendRecord({
        ...({ kind: 'TRANSFER', number: filingNo, sequence: position, atS: recordedAtS } as const),
        ...{ saltBytes, commitment: (salt) => commitmentTo(hash, salt) },
      });
      await insertTransfer.run({ ...record, ...logged, filingNo, position, recordedAtS });
      const callerId = await requireCaller(filingNo);
      outbox.add({ type: 'provenance.transferred', callerId, atMs: at.atMs, filingNo });
    },
    /** Throws RecordDamaged if the filing or one of its TRANSFER records is missing. */
    requireWhole: async (filingNo: string): Promise<void> => {
      await requireCaller(filingNo);
      await transfersOf(filingNo);
    },
    transfersOf,
  };
}
