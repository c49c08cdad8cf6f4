import { asc, eq, sql } from 'drizzle-orm';
import { dateOf } from '../../domain/calendar.ts';
import type { ProvenanceRecord } from '../../domain/provenance.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { Database } from './database.ts';
import { provenanceRecord } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** What happened to filings after they were filed. */
export interface ProvenanceRecords {
  /** Appends a TRANSFER record to those of the filing. Runs inside the effect that it belongs to. */
  appendTransfer(filingNo: string, at: BusinessTime): void;
  /** How many TRANSFER records a filing has. */
  transfersOf(filingNo: string): number;
  /** The records of a filing behind its source record, in order of happening. */
  of(filingNo: string): ProvenanceRecord[];
}

/** Prepares the statements of the records. */
export function createProvenanceRecords(database: Database): ProvenanceRecords {
  const ofFiling = eq(provenanceRecord.filingNo, sql.placeholder('filingNo'));
  // The end of the primary key, and not a count, which would read all records of the filing.
  const last = sql<number>`coalesce(max(${provenanceRecord.position}), 1)`;
  const insertTransfer = prepareRaw(
    database,
    database.insert(provenanceRecord).values({
      filingNo: sql.placeholder('filingNo'),
      position: sql`(SELECT ${last} + 1 FROM ${provenanceRecord} WHERE ${ofFiling})`,
      event: 'TRANSFER',
      at: sql.placeholder('at'),
      recordedAtS: sql.placeholder('recordedAtS'),
    }),
  );
  const selectLast = prepareRaw<{ last: number }>(
    database,
    database
      .select({ last: last.as('last') })
      .from(provenanceRecord)
      .where(ofFiling),
  );
  const select = prepareRaw<ProvenanceRecord>(
    database,
    database
      .select({ event: provenanceRecord.event, at: provenanceRecord.at })
      .from(provenanceRecord)
      .where(ofFiling)
      .orderBy(asc(provenanceRecord.position)),
  );
  return {
    appendTransfer: (filingNo, { atMs, timestamp }) => {
      insertTransfer.run({ filingNo, at: dateOf(timestamp), recordedAtS: Math.floor(atMs / 1000) });
    },
    transfersOf: (filingNo) => (selectLast.get({ filingNo })?.last ?? 1) - 1,
    of: (filingNo) => select.all({ filingNo }),
  };
}
