import { sql } from 'drizzle-orm';
import {
  blob,
  check,
  customType,
  index,
  integer,
  primaryKey,
  sqliteTable,
  text,
  uniqueIndex,
} from 'drizzle-orm/sqlite-core';
import type { Environment, Tier } from '../../domain/caller.ts';
import type { EscrowState, EscrowType } from '../../domain/escrow.ts';
import type { ProvenanceEvent } from '../../domain/provenance.ts';
import type { KeyStatus } from '../store.ts';

// Amounts are at most 2^53-1, so the driver's number is exact on the way out.
const money = customType<{ data: bigint; driverData: bigint | number }>({
  dataType: () => 'integer',
  fromDriver: (value) => BigInt(value),
});

/** What this database is: one row, written when it is made. */
export const deployment = sqliteTable(
  'deployment',
  {
    id: integer().primaryKey(),
    environment: text().$type<Environment>().notNull(),
    /** Scrambles escrow ids; 32 random bytes. */
    escrowIdKey: blob('escrow_id_key', { mode: 'buffer' }).notNull(),
  },
  (table) => [check('deployment_is_one_row', sql`${table.id} = 1`)],
);

/** Platforms have a tier; internal callers have none. */
export const caller = sqliteTable('caller', {
  id: integer().primaryKey(),
  name: text().notNull().unique(),
  tier: text().$type<Tier>(),
  /** Calls a month; null for unlimited. */
  monthlyQuota: integer('monthly_quota'),
});

/** API keys of platforms; the secret is sealed. */
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
  operator: integer({ mode: 'boolean' }).notNull(),
  createdAtS: integer('created_at_s').notNull(),
  revokedAtS: integer('revoked_at_s'),
});

/** Spent nonces, clustered by the window of time in which they were spent, so that old ones go in one sweep. */
export const nonceClaim = sqliteTable(
  'nonce_claim',
  {
    window: integer().notNull(),
    apiKeyId: integer('api_key_id').notNull(),
    nonce: text().notNull(),
    claimedAtS: integer('claimed_at_s').notNull(),
  },
  (table) => [primaryKey({ columns: [table.window, table.apiKeyId, table.nonce] })],
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

/** The last number given out, a row a kind and year. */
export const numberSequence = sqliteTable(
  'number_sequence',
  {
    kind: text().$type<'FILING' | 'ESCROW'>().notNull(),
    year: integer().notNull(),
    last: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.year] })],
);

/** Filings; triggers keep them from being changed. */
export const filing = sqliteTable(
  'filing',
  {
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
    /** The instant of `timestamp`, for retention. */
    filedAtS: integer('filed_at_s').notNull(),
  },
  (table) => [index('filing_by_caller').on(table.callerId)],
);

/** Circulation records of filings; triggers keep them from being changed. */
export const provenanceRecord = sqliteTable(
  'provenance_record',
  {
    filingNo: text('filing_no').notNull(),
    /** 1 is the source record. */
    position: integer().notNull(),
    event: text().$type<ProvenanceEvent>().notNull(),
    at: text().notNull(),
    recordedAtS: integer('recorded_at_s').notNull(),
  },
  (table) => [primaryKey({ columns: [table.filingNo, table.position] })],
);

/** Escrow orders; a filing has one at most that is UNPAID or FROZEN. */
export const escrow = sqliteTable(
  'escrow',
  {
    id: integer().primaryKey(),
    escrowId: text('escrow_id').notNull().unique(),
    filingNo: text('filing_no')
      .notNull()
      .references(() => filing.filingNo),
    callerId: integer('caller_id')
      .notNull()
      .references(() => caller.id),
    type: text().$type<EscrowType>().notNull(),
    amount: money().notNull(),
    buyerId: text('buyer_id').notNull(),
    sellerId: text('seller_id').notNull(),
    state: text().$type<EscrowState>().notNull(),
    timestamp: text().notNull(),
  },
  (table) => [
    index('escrow_by_caller').on(table.callerId),
    uniqueIndex('escrow_active').on(table.filingNo).where(sql`${table.state} IN ('UNPAID', 'FROZEN')`),
  ],
);

/** Idempotency keys; status and body are null while the first call is under way. */
export const idempotencyKey = sqliteTable(
  'idempotency_key',
  {
    callerId: integer('caller_id').notNull(),
    key: text().notNull(),
    fingerprint: blob({ mode: 'buffer' }).notNull(),
    claimedAtS: integer('claimed_at_s').notNull(),
    status: integer(),
    body: text(),
  },
  (table) => [
    primaryKey({ columns: [table.callerId, table.key] }),
    index('idempotency_key_by_age').on(table.claimedAtS),
  ],
);
