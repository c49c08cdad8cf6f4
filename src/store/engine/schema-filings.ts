import { blob, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { LogEventKind } from '../../domain/leaf.ts';
import type { ProvenanceEvent } from '../../domain/provenance.ts';
import { caller, money } from './schema-callers.ts';

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
  /** Random bytes: the salt of a record of version 1, or those of its members one after the other; null once they are erased. */
  salt: blob({ mode: 'buffer' }),
  /** Its leaf in the evidence log, from 0. */
  leafIndex: integer('leaf_index').notNull(),
  /** When texts, hash and salt were erased after retention: the time of the leaf about it; null if they are there. */
  erasedAtS: integer('erased_at_s'),
  /** The version of its record: see domain/filing-record.ts. */
  recordVersion: integer('record_version').notNull().default(1),
  /** The canonical JSON of the attachments; null if there are none. */
  attachments: text(),
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
    /** The members that the evidence discloses, as the link was made; null for all. */
    disclose: text(),
  },
  (table) => [
    index('evidence_link_by_filing').on(table.filingNo),
    index('evidence_link_by_end').on(table.expiresAtS),
  ],
);

/** The leaves of the evidence log, a row for those that were appended together. Triggers keep the rows. */
export const logLeaf = sqliteTable('log_leaf', {
  /** The index of its last leaf in the log, from 0. */
  id: integer().primaryKey(),
  /** A line for each leaf: canonical JSON, as domain/leaf.ts makes it. */
  data: text().notNull(),
  /** For each leaf, the hashes of all subtrees that it completes, from the leaf itself upwards. */
  hashes: blob({ mode: 'buffer' }).notNull(),
  /** The index of its first leaf. */
  first: integer().notNull(),
});

/** Log events; each is also a leaf. Triggers keep the rows. */
export const logEvent = sqliteTable('log_event', {
  /** Its number among the log events, from 1. */
  sequence: integer().primaryKey(),
  kind: text().$type<LogEventKind>().notNull(),
  /** A JSON object of texts and integers. */
  detail: text().notNull(),
  timeS: integer('time_s').notNull(),
  leafIndex: integer('leaf_index').notNull(),
});

/** The origins under which the log was published; the last one is effective. Triggers keep the rows. */
export const logOrigin = sqliteTable('log_origin', {
  id: integer().primaryKey(),
  origin: text().notNull(),
  /** The size of the tree when the log got this origin. */
  firstSize: integer('first_size').notNull(),
});

/** The keys that sign checkpoints. */
export const logKey = sqliteTable('log_key', {
  id: integer().primaryKey(),
  /** The verifier key in the format of signed notes: name, id, type and public key. */
  vkey: text().notNull().unique(),
  /** The seed of the private key, encrypted like the secrets of API keys. */
  sealedSeed: blob('sealed_seed', { mode: 'buffer' }).notNull(),
  /** The time of the leaf that says so, Unix seconds. */
  addedAtS: integer('added_at_s').notNull(),
  /** When it stops signing, Unix seconds; null if that is not decided. */
  endsAtS: integer('ends_at_s'),
});

/** Published checkpoints that are kept: the newest one, and those with a time stamp. */
export const logCheckpoint = sqliteTable('log_checkpoint', {
  /** The size of the tree. */
  size: integer().primaryKey(),
  /** The signed note with its cosignatures, as published. */
  note: text().notNull(),
  publishedAtS: integer('published_at_s').notNull(),
  /** The RFC 3161 time stamp token over the note's text, DER; null without one. */
  timeStamp: blob('time_stamp', { mode: 'buffer' }),
});
