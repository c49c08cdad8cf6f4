import { asc, eq, type SQL, sql } from 'drizzle-orm';
import type { ProvenanceEvent, ProvenanceRecord } from '../../domain/provenance.ts';
import type { BusinessTime } from '../filing-commands.ts';
import type { Database } from './database.ts';
import { provenanceRecord } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** The circulation records of filings. */
export interface ProvenanceRecords {
  /** Writes the source record of a new filing. Runs inside the effect that it belongs to. */
  begin(filingNo: string, at: BusinessTime): void;
  /** Appends a record behind those of the filing. Runs inside the effect that it belongs to. */
  append(filingNo: string, event: ProvenanceEvent, at: BusinessTime): void;
  /** How many TRANSFER records a filing has. */
  transfersOf(filingNo: string): number;
  /** The records of a filing, in order of happening. */
  of(filingNo: string): ProvenanceRecord[];
}

/** Prepares the statements of the records. */
export function createProvenanceRecords(database: Database): ProvenanceRecords {
  const ofFiling = eq(provenanceRecord.filingNo, sql.placeholder('filingNo'));
  const insertAt = (position: SQL) =>
    prepareRaw(
      database,
      database.insert(provenanceRecord).values({
        filingNo: sql.placeholder('filingNo'),
        position,
        event: sql.placeholder('event'),
        at: sql.placeholder('at'),
        recordedAtS: sql.placeholder('recordedAtS'),
      }),
    );
  const insertFirst = insertAt(sql`1`);
  // The end of the primary key, and not a count, which would read all records of the filing.
  const last = sql<number>`coalesce(max(${provenanceRecord.position}), 0)`;
  const insertNext = insertAt(sql`(SELECT ${last} + 1 FROM ${provenanceRecord} WHERE ${ofFiling})`);
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
    begin: (filingNo, at) => {
      insertFirst.run(valuesOf(filingNo, 'SUBMITTED', at));
    },
    append: (filingNo, event, at) => {
      insertNext.run(valuesOf(filingNo, event, at));
    },
    // The first record is the source.
    transfersOf: (filingNo) => Math.max(0, (selectLast.get({ filingNo })?.last ?? 0) - 1),
    of: (filingNo) => select.all({ filingNo }),
  };
}

function valuesOf(filingNo: string, event: ProvenanceEvent, { atMs, timestamp }: BusinessTime) {
  return { filingNo, event, at: timestamp.slice(0, 10), recordedAtS: Math.floor(atMs / 1000) };
}
