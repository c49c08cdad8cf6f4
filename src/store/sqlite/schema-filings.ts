import { blob, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { ProvenanceEvent } from '../../domain/provenance.ts';
import { caller } from './schema-callers.ts';
import { money } from './schema-columns.ts';

/** Filings; triggers keep them from being changed. */
export const filing = sqliteTable('filing', {
  id: integer().primaryKey(),
  filingNo: text('filing_no').notNull().unique(),
  callerId: integer('caller_id')
    .notNull()
    .references(() => caller.id),
  author: text().notNull(),
  era: text().notNull(),
  size: text().notNull(),
  material: text().notNull(),
  condition: text().notNull(),
  price: money().notNull(),
  hash: text().notNull(),
  timestamp: text().notNull(),
  /** The instant of `timestamp`, which is the time of its leaf. */
  filedAtS: integer('filed_at_s').notNull(),
  /** The id of the caller's filing before this one in the year of the number; null for the first. It may be deleted. */
  previousId: integer('previous_id'),
  /** What its leaf is salted with, 32 random bytes; null once it is erased. */
  salt: blob({ mode: 'buffer' }),
  /** Its leaf in the evidence log, from 0. */
  leafIndex: integer('leaf_index').notNull(),
  /** When texts, hash and salt were erased after retention: the time of the leaf about it; null if they are there. */
  erasedAtS: integer('erased_at_s'),
});

/**
 * The last filing of each caller and year of numbers, where the chain of `previous_id` begins. A trigger keeps it. An index of filings by caller would have a page to write for each caller of a commit; this has hundreds on one.
 */
export const latestFiling = sqliteTable(
  'latest_filing',
  {
    callerId: integer('caller_id').notNull(),
    year: integer().notNull(),
    filingId: integer('filing_id').notNull(),
    /** How many filings of the year the caller has. */
    filings: integer().notNull().default(0),
  },
  (table) => [primaryKey({ columns: [table.callerId, table.year] })],
);

/**
 * The circulation records of filings, without the source record, which is the row of the filing. Triggers keep them from
 * being changed.
 */
export const provenanceRecord = sqliteTable(
  'provenance_record',
  {
    filingNo: text('filing_no').notNull(),
    /** Its number among the records of the filing. The source record is 1. */
    position: integer().notNull(),
    event: text().$type<Exclude<ProvenanceEvent, 'SUBMITTED'>>().notNull(),
    at: text().notNull(),
    /** The time of its leaf, Unix seconds. */
    recordedAtS: integer('recorded_at_s').notNull(),
    /** What its leaf is salted with, 32 random bytes; null once it is erased. */
    salt: blob({ mode: 'buffer' }),
    /** Its leaf in the evidence log, from 0. */
    leafIndex: integer('leaf_index').notNull(),
  },
  (table) => [primaryKey({ columns: [table.filingNo, table.position] })],
);

/** Links to evidence; a row is deleted some time after the link expires. */
export const evidenceLink = sqliteTable(
  'evidence_link',
  {
    id: integer().primaryKey(),
    linkId: text('link_id').notNull().unique(),
    filingNo: text('filing_no').notNull(),
    /** The place of the record among those of the filing, from 1. */
    sequence: integer().notNull(),
    /** Who made it. */
    callerId: integer('caller_id')
      .notNull()
      .references(() => caller.id),
    createdAtS: integer('created_at_s').notNull(),
    expiresAtS: integer('expires_at_s').notNull(),
    /** Null unless it was revoked. */
    revokedAtS: integer('revoked_at_s'),
  },
  (table) => [
    index('evidence_link_by_filing').on(table.filingNo),
    index('evidence_link_by_end').on(table.expiresAtS),
  ],
);
