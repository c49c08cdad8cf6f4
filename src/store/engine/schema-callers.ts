import { sql } from 'drizzle-orm';
import {
  type AnySQLiteColumn,
  blob,
  customType,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core';
import type { KeyStatus, PlatformStatus, Tier } from '../../domain/caller.ts';
import type { PartyRole } from '../../domain/escrow-terms.ts';

/** An amount in minor units. It is at most 2^53-1, so the driver's number is exact. */
export const money = customType<{ data: bigint; driverData: bigint | number }>({
  dataType: () => 'integer',
  fromDriver: (value) => BigInt(value),
});

/** Platforms have a tier; internal callers have none. */
export const caller = sqliteTable(
  'caller',
  {
    id: integer().primaryKey(),
    name: text().notNull().unique(),
    tier: text().$type<Tier>(),
    /** Calls a month; null for unlimited. */
    monthlyQuota: integer('monthly_quota'),
    /** Of a platform. An internal caller stays ACTIVE: its tokens alone decide. */
    status: text().$type<PlatformStatus>().notNull().default('ACTIVE'),
    /** Filing numbers of a year that the platform may use; null for no cap. */
    filingCap: integer('filing_cap'),
  },
  (table) => [index('caller_capped').on(table.id).where(sql`${table.filingCap} IS NOT NULL`)],
);

/** API keys of platforms; the secret is encrypted. */
export const apiKey = sqliteTable('api_key', {
  id: integer().primaryKey(),
  keyId: text('key_id').notNull().unique(),
  apiKey: text('api_key').notNull().unique(),
  callerId: integer('caller_id')
    .notNull()
    .references(() => caller.id),
  sealedSecret: blob('sealed_secret', { mode: 'buffer' }).notNull(),
  status: text().$type<KeyStatus>().notNull(),
  createdAtS: integer('created_at_s').notNull(),
  expiresAtS: integer('expires_at_s'),
});

/** Bearer tokens of internal callers, by their SHA-256. */
export const serviceToken = sqliteTable('service_token', {
  id: integer().primaryKey(),
  tokenId: text('token_id').notNull().unique(),
  sha256: blob({ mode: 'buffer' }).notNull().unique(),
  callerId: integer('caller_id')
    .notNull()
    .references(() => caller.id),
  createdAtS: integer('created_at_s').notNull(),
  revokedAtS: integer('revoked_at_s'),
  /** What it may do, each word followed by a space: `read file `. */
  scopes: text().notNull().default(''),
  /** When it ends, Unix seconds; null for never. */
  expiresAtS: integer('expires_at_s'),
  /** The platform that it acts for; null if it acts for its own caller. */
  platformId: integer('platform_id').references((): AnySQLiteColumn => caller.id),
});

/**
 * Buyers and sellers of platforms, and their ids at the provider. A trigger lets only `removed_at_s` change, so that an
 * order keeps the parties that it was opened for.
 */
export const party = sqliteTable(
  'party',
  {
    id: integer().primaryKey(),
    callerId: integer('caller_id')
      .notNull()
      .references(() => caller.id),
    role: text().$type<PartyRole>().notNull(),
    /** The buyerId or sellerId of the platform. */
    partyId: text('party_id').notNull(),
    /** The provider's ids for it, a JSON object of strings. */
    providerIds: text('provider_ids').notNull(),
    addedAtS: integer('added_at_s').notNull(),
    /** When it was removed; null while it is known. */
    removedAtS: integer('removed_at_s'),
  },
  (table) => [
    uniqueIndex('party_known')
      .on(table.callerId, table.role, table.partyId)
      .where(sql`${table.removedAtS} IS NULL`),
  ],
);

/** Spent nonces, a row for those of one transaction and window of time. */
export const spentNonces = sqliteTable(
  'spent_nonces',
  {
    id: integer().primaryKey(),
    window: integer().notNull(),
    /** As admission.ts of SQLite writes them. */
    entries: blob({ mode: 'buffer' }).notNull(),
  },
  (table) => [index('spent_nonces_by_window').on(table.window)],
);

/** Calls counted, a row a platform and month (YYYY-MM). */
export const usage = sqliteTable(
  'usage',
  {
    callerId: integer('caller_id').notNull(),
    month: text().notNull(),
    calls: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.callerId, table.month] })],
);

/** Idempotency keys, each with the result or the instruction of the call that claimed it. */
export const idempotencyKey = sqliteTable(
  'idempotency_key',
  {
    callerId: integer('caller_id').notNull(),
    key: text().notNull(),
    fingerprint: blob({ mode: 'buffer' }).notNull(),
    claimedAtS: integer('claimed_at_s').notNull(),
    /** The instruction of the call, whose current state a replay returns. */
    instructionId: text('instruction_id'),
    /** The result of the command, serialised by node:v8; null if there is an instruction. */
    outcome: blob({ mode: 'buffer' }),
    /** The request id of the call that claimed it. */
    requestId: text('request_id'),
  },
  (table) => [
    primaryKey({ columns: [table.callerId, table.key] }),
    index('idempotency_key_by_age').on(table.claimedAtS),
  ],
);
