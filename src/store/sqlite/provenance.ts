import { asc, eq, sql } from 'drizzle-orm';
import type { ProvenanceEvent, ProvenanceRecord } from '../../domain/provenance.ts';
import type { BusinessTime } from '../store.ts';
import type { Database } from './database.ts';
import { provenanceRecord } from './schema.ts';
import { prepareHot } from './statement.ts';

/** The circulation records of filings. */
export interface ProvenanceRecords {
  /** Appends a record behind those of the filing. Runs inside the effect that it belongs to. */
  append(filingNo: string, event: ProvenanceEvent, at: BusinessTime): void;
  /** The records of a filing, in order of happening. */
  of(filingNo: string): ProvenanceRecord[];
}

/** Prepares the statements of the records. */
export function createProvenanceRecords(database: Database): ProvenanceRecords {
  const ofFiling = eq(provenanceRecord.filingNo, sql.placeholder('filingNo'));
  const insert = prepareHot(
    database,
    database.insert(provenanceRecord).values({
      filingNo: sql.placeholder('filingNo'),
      position: sql`(SELECT count(*) + 1 FROM ${provenanceRecord} WHERE ${ofFiling})`,
      event: sql.placeholder('event'),
      at: sql.placeholder('at'),
      recordedAtS: sql.placeholder('recordedAtS'),
    }),
  );
  const select = prepareHot<ProvenanceRecord>(
    database,
    database
      .select({ event: provenanceRecord.event, at: provenanceRecord.at })
      .from(provenanceRecord)
      .where(ofFiling)
      .orderBy(asc(provenanceRecord.position)),
  );
  return {
    append: (filingNo, event, { atMs, timestamp }) => {
      insert.run({ filingNo, event, at: timestamp.slice(0, 10), recordedAtS: Math.floor(atMs / 1000) });
    },
    of: (filingNo) => select.all({ filingNo }),
  };
}
