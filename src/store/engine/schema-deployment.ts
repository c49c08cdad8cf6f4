import { sql } from 'drizzle-orm';
import { blob, check, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { Environment } from '../../domain/caller.ts';

/** What this database is: one row, written when it is made. */
export const deployment = sqliteTable(
  'deployment',
  {
    id: integer().primaryKey(),
    environment: text().$type<Environment>().notNull(),
    /** 32 random bytes: escrow ids are scrambled with it, and keys are derived from it. */
    secret: blob({ mode: 'buffer' }).notNull(),
    /** ISO 4217 code of all amounts. */
    currency: text().notNull(),
    /** The payment provider that holds the money of open orders; null until the registry is first served. */
    provider: text(),
    /** The newest id of a webhook endpoint. No id is used twice: a delivery to a deleted endpoint must not count for a new one. */
    newestWebhook: integer('newest_webhook').notNull().default(0),
    /** By how many seconds operators have advanced the clock of a sandbox. A trigger rejects that it goes back. */
    clockAheadS: integer('clock_ahead_s').notNull().default(0),
  },
  (table) => [check('deployment_is_one_row', sql`${table.id} = 1`)],
);

/**
 * The oldest version of Artseal that can use this database: one row, which the first migration inserts. Older executables
 * refuse to open it. A migration that the version before cannot use raises it.
 */
export const oldestVersion = sqliteTable('oldest_version', {
  id: integer().primaryKey(),
  /** The number of migrations that it knows. */
  schema: integer().notNull(),
  /** As in its package.json. */
  version: text().notNull(),
});

/**
 * The restores of this database from a backup, a row each. What the original did after the backup is not known here.
 * Triggers keep the rows.
 */
export const restoration = sqliteTable('restoration', {
  id: integer().primaryKey(),
  /** When the backup was taken. */
  takenAtS: integer('taken_at_s').notNull(),
  restoredAtS: integer('restored_at_s').notNull(),
  /** When it was first served; null until then. By that time the original had ended. */
  servedAtS: integer('served_at_s'),
});

/** Numbers that are skipped because the original may have issued them after the backup; triggers keep the rows. */
export const numberGap = sqliteTable(
  'number_gap',
  {
    kind: text().$type<NumberKind>().notNull(),
    year: integer().notNull(),
    /** The last number before the gap; 0 if it begins the year. */
    after: integer().notNull(),
    /** The last number of the gap. */
    through: integer().notNull(),
    restorationId: integer('restoration_id')
      .notNull()
      .references(() => restoration.id),
  },
  (table) => [primaryKey({ columns: [table.kind, table.year, table.after] })],
);

/** What is numbered from 1 in each year. */
export type NumberKind = 'FILING' | 'ESCROW';

/** The last number issued, a row for each kind and year. Filings have their numbers themselves. */
export const numberSequence = sqliteTable(
  'number_sequence',
  {
    kind: text().$type<'ESCROW'>().notNull(),
    year: integer().notNull(),
    last: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.year] })],
);

/** The audit log: what operators changed, and why. Triggers keep the rows. */
export const auditEntry = sqliteTable('audit_entry', {
  id: integer().primaryKey(),
  atS: integer('at_s').notNull(),
  /** Who: `token tok_… (name)`, or `local:name` for a user of the machine. */
  actor: text().notNull(),
  /** What was done: `key.suspend`. */
  action: text().notNull(),
  /** What was changed, by its public name. */
  subject: text().notNull(),
  /** Why, as the operator said; null if nothing was said. */
  reason: text(),
  /** What it was before, JSON; null if it was not there. */
  before: text(),
  /** What it is afterwards, JSON; null if it was deleted. */
  after: text(),
});
