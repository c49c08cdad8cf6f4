import { blob, integer, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { LogEventKind } from '../../domain/leaf.ts';

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
  /** The seed of the private key, sealed like the secrets of API keys. */
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
