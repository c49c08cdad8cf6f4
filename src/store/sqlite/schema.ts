import { sql } from 'drizzle-orm';
import {
  type AnySQLiteColumn,
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
import type { Environment, KeyStatus, PlatformStatus, Tier } from '../../domain/caller.ts';
import type { EscrowState, InstructionKind, InstructionStatus, PayoutStatus } from '../../domain/escrow.ts';
import type { EscrowType, PartyRole } from '../../domain/escrow-terms.ts';
import type { EventType } from '../../domain/event.ts';
import type { LogEventKind } from '../../domain/leaf.ts';
import type { PaymentStatus } from '../../domain/payment.ts';
import type { ProvenanceEvent } from '../../domain/provenance.ts';
import type { DeliveryStatus, WebhookStatus } from '../../domain/webhook.ts';

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
    /** 32 random bytes: escrow ids are scrambled with it, and keys are derived from it. */
    secret: blob({ mode: 'buffer' }).notNull(),
    /** ISO 4217 code of all amounts. */
    currency: text().notNull(),
    /** The payment provider that holds the money of open orders; null until the registry is first served. */
    provider: text(),
    /** The newest id of an endpoint: none is given twice, since what is under way to one that is gone must not count for another. */
    newestWebhook: integer('newest_webhook').notNull().default(0),
  },
  (table) => [check('deployment_is_one_row', sql`${table.id} = 1`)],
);

/** Platforms have a tier; internal callers have none. */
export const caller = sqliteTable(
  'caller',
  {
    id: integer().primaryKey(),
    name: text().notNull().unique(),
    tier: text().$type<Tier>(),
    /** Calls a month; null for unlimited. */
    monthlyQuota: integer('monthly_quota'),
    /** Of a platform; an internal caller is governed by its tokens alone, and stays ACTIVE. */
    status: text().$type<PlatformStatus>().notNull().default('ACTIVE'),
    /** Filing numbers of a year that the platform may use; null for no cap. */
    filingCap: integer('filing_cap'),
  },
  (table) => [index('caller_capped').on(table.id).where(sql`${table.filingCap} IS NOT NULL`)],
);

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
  createdAtS: integer('created_at_s').notNull(),
  revokedAtS: integer('revoked_at_s'),
  /** What it may do, each word with a space behind it: `read file `. */
  scopes: text().notNull().default(''),
  /** When it ends, Unix seconds; null for never. */
  expiresAtS: integer('expires_at_s'),
  /** The platform that it acts for; null if it acts for its own caller. */
  platformId: integer('platform_id').references((): AnySQLiteColumn => caller.id),
});

/**
 * Buyers and sellers of platforms, and what the provider knows them by. A trigger keeps all of a row but its end, so
 * that an order goes on with those that it was opened for.
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

/** What operators did, and why; triggers keep the rows. */
export const auditEntry = sqliteTable('audit_entry', {
  id: integer().primaryKey(),
  atS: integer('at_s').notNull(),
  /** Who: `token tok_… (name)`, or `user name (uid)` of the machine. */
  actor: text().notNull(),
  /** What was done: `key.suspend`. */
  action: text().notNull(),
  /** On what, by its public name. */
  subject: text().notNull(),
  /** Why, as the operator said; null if nothing was said. */
  reason: text(),
  /** What it was before, JSON; null if it was not there. */
  before: text(),
  /** What it is since, JSON; null if it is gone. */
  after: text(),
});

/** Spent nonces, a row for those of one transaction and window of time. */
export const spentNonces = sqliteTable(
  'spent_nonces',
  {
    id: integer().primaryKey(),
    window: integer().notNull(),
    /** As nonce-entries.ts writes them. */
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

/** What has numbers of its own in each year. */
export type NumberKind = 'FILING' | 'ESCROW';

/** The last number given out, a row a kind and year. Those of filings are in the filings. */
export const numberSequence = sqliteTable(
  'number_sequence',
  {
    kind: text().$type<'ESCROW'>().notNull(),
    year: integer().notNull(),
    last: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.kind, table.year] })],
);

/**
 * Each time that this database was restored from a backup. What the original did after the backup was taken is not known
 * here. Triggers keep the rows.
 */
export const restoration = sqliteTable('restoration', {
  id: integer().primaryKey(),
  /** When the backup was taken. */
  takenAtS: integer('taken_at_s').notNull(),
  restoredAtS: integer('restored_at_s').notNull(),
  /** When it was first served; null until then. The original had ended by that time. */
  servedAtS: integer('served_at_s'),
});

/** Numbers that are left out since the original may have given them out after the backup; triggers keep the rows. */
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
  /** When texts, hash and salt were erased, its retention being over: the time of the leaf that says so; null if they are there. */
  erasedAtS: integer('erased_at_s'),
});

/**
 * The filing that each caller filed last in each year of numbers, where the chain of `previous_id` begins. A trigger keeps
 * it. An index of filings by caller would have a page to write for each caller of a commit; this has hundreds on one.
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
 * The circulation records of filings but the source record, which the row of the filing tells; triggers keep them from
 * being changed.
 */
export const provenanceRecord = sqliteTable(
  'provenance_record',
  {
    filingNo: text('filing_no').notNull(),
    /** Place among all records of the filing: 2 is the first here, as it was when the source record was stored at 1. */
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

/** The leaves of the evidence log, a row for one or for some that were appended together; triggers keep them. */
export const logLeaf = sqliteTable('log_leaf', {
  /** The index of the last of them in the log, from 0. */
  id: integer().primaryKey(),
  /** A line for each: canonical JSON, as domain/leaf.ts makes it. */
  data: text().notNull(),
  /** The hashes of all subtrees that each completes, from the leaf itself upwards; leaf behind leaf. */
  hashes: blob({ mode: 'buffer' }).notNull(),
  /** The index of the first of them. */
  first: integer().notNull(),
});

/** What happened to the evidence log itself, each also a leaf of it; triggers keep them. */
export const logEvent = sqliteTable('log_event', {
  /** Its place among them, from 1. */
  sequence: integer().primaryKey(),
  kind: text().$type<LogEventKind>().notNull(),
  /** What is told of it, a JSON object of texts and integers. */
  detail: text().notNull(),
  timeS: integer('time_s').notNull(),
  leafIndex: integer('leaf_index').notNull(),
});

/** The names under which the log was and is published, the last one in force; triggers keep them. */
export const logOrigin = sqliteTable('log_origin', {
  id: integer().primaryKey(),
  origin: text().notNull(),
  /** The size of the tree from which on it is published under that name. */
  firstSize: integer('first_size').notNull(),
});

/** What checkpoints are signed with. */
export const logKey = sqliteTable('log_key', {
  id: integer().primaryKey(),
  /** The verifier key in the format of signed notes: name, id, type and public key. */
  vkey: text().notNull().unique(),
  /** The seed of the private key, sealed like the secrets of API keys. */
  sealedSeed: blob('sealed_seed', { mode: 'buffer' }).notNull(),
  /** The time of the leaf that says so, Unix seconds. */
  addedAtS: integer('added_at_s').notNull(),
  /** As of when it signs no more, Unix seconds; null if that is not decided. */
  endsAtS: integer('ends_at_s'),
});

/** Checkpoints that were published and are kept: the newest, and those that bear a time stamp. */
export const logCheckpoint = sqliteTable('log_checkpoint', {
  /** The size of the tree. */
  size: integer().primaryKey(),
  /** The signed note with its cosignatures, as published. */
  note: text().notNull(),
  publishedAtS: integer('published_at_s').notNull(),
  /** The RFC 3161 time stamp token over the note's text, DER; null without one. */
  timeStamp: blob('time_stamp', { mode: 'buffer' }),
});

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
    /** The provider's own name for its hold. */
    reference: text(),
    /** When the provider is to be asked next; null for never. */
    lookUpAtMs: integer('look_up_at_ms'),
    /** Questions and instructions in a row that the provider left without an answer. */
    failedAttempts: integer('failed_attempts').notNull().default(0),
    /** Why the order waits for a person; null if it does not. */
    review: text(),
    /** What the provider said when the order last began to wait for a person. */
    foundStatus: text('found_status').$type<PaymentStatus>(),
    foundAmount: money('found_amount'),
    foundCurrency: text('found_currency'),
    /** Whether a person accepted that. */
    accepted: integer({ mode: 'boolean' }).notNull().default(false),
    /** Notifications that have come about the order, and decisions of a person. */
    notificationCount: integer('notification_count').notNull().default(0),
    /** Who pays and who is paid, as registered when it was opened; null where the provider needs no names. */
    buyerPartyId: integer('buyer_party_id').references(() => party.id),
    sellerPartyId: integer('seller_party_id').references(() => party.id),
    /** Until when the provider keeps its hold, as far as it says so; Unix seconds. */
    holdExpiresAtS: integer('hold_expires_at_s'),
    /** Where the buyer has to act before the amount can be held; null if nothing is to be done there. */
    nextActionUrl: text('next_action_url'),
    /** Until when it is waited for that, Unix milliseconds. */
    nextActionUntilMs: integer('next_action_until_ms'),
    /** The end of the hold that the last escrow.hold_expiring event names, Unix seconds; null without one. */
    notifiedHoldEndS: integer('notified_hold_end_s'),
  },
  (table) => [
    index('escrow_by_caller').on(table.callerId),
    index('escrow_by_caller_and_state').on(table.callerId, table.state),
    index('escrow_by_filing').on(table.filingNo),
    index('escrow_by_state').on(table.state),
    index('escrow_by_look_up').on(table.lookUpAtMs).where(sql`${table.lookUpAtMs} IS NOT NULL`),
    index('escrow_due')
      .on(table.callerId, sql`(${table.failedAttempts} > 0)`, table.lookUpAtMs)
      .where(sql`${table.lookUpAtMs} IS NOT NULL`),
    index('escrow_by_reference').on(table.reference).where(sql`${table.reference} IS NOT NULL`),
    index('escrow_hold_end').on(table.holdExpiresAtS).where(sql`${table.state} = 'FROZEN'`),
    index('escrow_in_review').on(table.id).where(sql`${table.review} IS NOT NULL`),
    uniqueIndex('escrow_active').on(table.filingNo).where(sql`${table.state} IN ('UNPAID', 'FROZEN')`),
  ],
);

/**
 * Instructions to the payment provider, each written before it is given. An order has one FREEZE, one at most that
 * is open to pay out and one to give back, and one at most that paid.
 */
export const escrowInstruction = sqliteTable(
  'escrow_instruction',
  {
    id: integer().primaryKey(),
    /** The provider's idempotency key. */
    instructionId: text('instruction_id').notNull().unique(),
    orderId: integer('order_id')
      .notNull()
      .references(() => escrow.id),
    kind: text().$type<InstructionKind>().notNull(),
    status: text().$type<InstructionStatus>().notNull(),
    preparedAtMs: integer('prepared_at_ms').notNull(),
    /** Why the provider declined it, in words for the buyer; null if it did not, or gave no reason. */
    reason: text(),
  },
  (table) => [
    index('escrow_instruction_by_order').on(table.orderId),
    index('escrow_instruction_open')
      .on(table.orderId)
      .where(sql`${table.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`),
    uniqueIndex('escrow_freeze').on(table.orderId).where(sql`${table.kind} = 'FREEZE'`),
    uniqueIndex('escrow_release_open')
      .on(table.orderId)
      .where(sql`${table.kind} = 'RELEASE' AND ${table.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`),
    uniqueIndex('escrow_return_open')
      .on(table.orderId)
      .where(
        sql`${table.kind} IN ('REFUND', 'CANCEL') AND ${table.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`,
      ),
    uniqueIndex('escrow_resolution_paid')
      .on(table.orderId)
      .where(sql`${table.kind} IN ('RELEASE', 'REFUND') AND ${table.status} = 'CONFIRMED'`),
  ],
);

/** The states that an order has been in; triggers keep them from being changed. */
export const escrowChange = sqliteTable(
  'escrow_change',
  {
    orderId: integer('order_id')
      .notNull()
      .references(() => escrow.id),
    /** 1 is UNPAID. */
    position: integer().notNull(),
    state: text().$type<EscrowState>().notNull(),
    at: text().notNull(),
    changedAtS: integer('changed_at_s').notNull(),
    /** What the provider said of money that was paid out, where that is what the row tells; null where the state is. */
    payment: text().$type<PayoutStatus>(),
    /** What of it the seller still has; null where that is all or nothing, or not known. */
    paymentAmount: money('payment_amount'),
    /** Whether a person decided the state, without the provider's word. */
    byOperator: integer('by_operator', { mode: 'boolean' }).notNull().default(false),
  },
  (table) => [primaryKey({ columns: [table.orderId, table.position] })],
);

/** Notifications of the provider, each once. */
export const providerNotification = sqliteTable(
  'provider_notification',
  {
    eventId: text('event_id').primaryKey(),
    receivedAtS: integer('received_at_s').notNull(),
  },
  (table) => [index('provider_notification_by_age').on(table.receivedAtS)],
);

/** Idempotency keys, each with what came of the call that claimed it: its outcome, or the instruction that it gave. */
export const idempotencyKey = sqliteTable(
  'idempotency_key',
  {
    callerId: integer('caller_id').notNull(),
    key: text().notNull(),
    fingerprint: blob({ mode: 'buffer' }).notNull(),
    claimedAtS: integer('claimed_at_s').notNull(),
    /** The instruction that the call gave, for a repetition to go on with. */
    instructionId: text('instruction_id'),
    /** The outcome of the command, serialised by node:v8; null if it gave an instruction. */
    outcome: blob({ mode: 'buffer' }),
    /** Of the call that claimed it. */
    requestId: text('request_id'),
  },
  (table) => [
    primaryKey({ columns: [table.callerId, table.key] }),
    index('idempotency_key_by_age').on(table.claimedAtS),
  ],
);

/** What happened to what callers have, a row for some events of one transaction; the oldest are deleted after 30 days. */
export const eventLog = sqliteTable('event_log', {
  /** The position of the last of them among all events. */
  id: integer().primaryKey(),
  /** The position of the first of them. */
  first: integer().notNull(),
  /** When the last of them happened, Unix seconds. */
  newestAtS: integer('newest_at_s').notNull(),
  /** A line for each, as event-lines.ts writes them. */
  lines: text().notNull(),
});

/** The newest event of each caller, and, under 0, of all. */
export const eventHead = sqliteTable('event_head', {
  callerId: integer('caller_id').primaryKey(),
  /** The sequence of it, or that before the gap of a restore. */
  sequence: integer().notNull(),
  /** Its position; 0 if there is none. */
  position: integer().notNull(),
});

/**
 * The position of every so many events of each caller: the events of one are a chain, in which each names the one before it, and
 * these are where it can be entered. An index of events by caller would have a page to write for each caller of a commit.
 */
export const eventMark = sqliteTable(
  'event_mark',
  {
    callerId: integer('caller_id').notNull(),
    sequence: integer().notNull(),
    position: integer().notNull(),
  },
  (table) => [primaryKey({ columns: [table.callerId, table.sequence] })],
);

/** Endpoints that events are sent to. */
export const webhook = sqliteTable(
  'webhook',
  {
    id: integer().primaryKey(),
    webhookId: text('webhook_id').notNull().unique(),
    callerId: integer('caller_id')
      .notNull()
      .references(() => caller.id),
    /** The origin of its URL. */
    origin: text().notNull(),
    /** Its URL, sealed like its secret. */
    sealedUrl: blob('sealed_url', { mode: 'buffer' }).notNull(),
    /** Which events it is sent, each word with a space behind it; empty for all. */
    eventTypes: text('event_types').notNull(),
    description: text().notNull(),
    status: text().$type<WebhookStatus>().notNull(),
    /** Why it is disabled; null if it is not. */
    disabledReason: text('disabled_reason'),
    createdAtS: integer('created_at_s').notNull(),
    /** Sealed like the secrets of API keys, for the webhook_id. */
    sealedSecret: blob('sealed_secret', { mode: 'buffer' }).notNull(),
    /** The secret before; null if there was none. */
    previousSecret: blob('previous_secret', { mode: 'buffer' }),
    previousEndsAtS: integer('previous_ends_at_s'),
    /** The sequence up to which each event has its delivery, or is none that it is sent. */
    cursor: integer().notNull(),
    /** Since when each attempt failed, Unix seconds; null if the last one did not. */
    failingSinceS: integer('failing_since_s'),
  },
  (table) => [index('webhook_by_caller').on(table.callerId)],
);

/** What became of events at endpoints. */
export const webhookDelivery = sqliteTable(
  'webhook_delivery',
  {
    /** The id of the row of the endpoint. */
    webhook: integer()
      .notNull()
      .references(() => webhook.id),
    sequence: integer().notNull(),
    type: text().$type<EventType>().notNull(),
    /** What the event is about: those of one resource are sent in their order. */
    resource: text().notNull(),
    /** When the event happened, Unix seconds. */
    eventAtS: integer('event_at_s').notNull(),
    status: text().$type<DeliveryStatus>().notNull(),
    attempts: integer().notNull(),
    lastAttemptAtMs: integer('last_attempt_at_ms'),
    /** Null unless it is PENDING. */
    nextAttemptAtMs: integer('next_attempt_at_ms'),
    httpStatus: integer('http_status'),
    /** The first 512 bytes of the last response. */
    response: blob({ mode: 'buffer' }),
    error: text(),
  },
  (table) => [
    primaryKey({ columns: [table.webhook, table.sequence] }),
    index('webhook_delivery_due')
      .on(table.webhook, table.nextAttemptAtMs)
      .where(sql`${table.status} = 'PENDING'`),
    // With the status, which it is by: otherwise SQLite takes the primary key for cheaper, and reads all of an endpoint.
    index('webhook_delivery_open')
      .on(table.webhook, table.resource, table.sequence, table.status)
      .where(sql`${table.status} IN ('PENDING', 'WAITING')`),
  ],
);
