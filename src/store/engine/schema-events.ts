import { sql } from 'drizzle-orm';
import { blob, index, integer, primaryKey, sqliteTable, text } from 'drizzle-orm/sqlite-core';
import type { EventType } from '../../domain/event.ts';
import type { DeliveryStatus, WebhookStatus } from '../../domain/webhook.ts';
import { caller } from './schema-callers.ts';

/** Events, a row for some of one transaction. They are deleted after 30 days. */
export const eventLog = sqliteTable('event_log', {
  /** The position of its last event among all events. */
  id: integer().primaryKey(),
  /** The position of its first event. */
  first: integer().notNull(),
  /** The time of its last event, Unix seconds. */
  newestAtS: integer('newest_at_s').notNull(),
  /** A line for each event, as outbox.ts writes it. */
  lines: text().notNull(),
});

/** The newest event of each caller, and of all callers under id 0. */
export const eventHead = sqliteTable('event_head', {
  callerId: integer('caller_id').primaryKey(),
  /** Its sequence, or the last one before the gap of a restore. */
  sequence: integer().notNull(),
  /** Its position; 0 if there is none. */
  position: integer().notNull(),
});

/**
 * The positions at which the chain of a caller's events can be entered; each event names the one before it. An index of events by caller would have a page to write for each caller of a commit.
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

/** Webhook endpoints. */
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
    /** Its URL, encrypted like its secret. */
    sealedUrl: blob('sealed_url', { mode: 'buffer' }).notNull(),
    /** The event types that it receives, each followed by a space; empty for all. */
    eventTypes: text('event_types').notNull(),
    description: text().notNull(),
    status: text().$type<WebhookStatus>().notNull(),
    /** Why it is disabled; null if it is not. */
    disabledReason: text('disabled_reason'),
    createdAtS: integer('created_at_s').notNull(),
    /** Encrypted like the secrets of API keys, for the webhook_id. */
    sealedSecret: blob('sealed_secret', { mode: 'buffer' }).notNull(),
    /** The previous secret; null if there was none. */
    previousSecret: blob('previous_secret', { mode: 'buffer' }),
    previousEndsAtS: integer('previous_ends_at_s'),
    /** The sequence through which each event has its delivery or is not of its types. */
    cursor: integer().notNull(),
    /** When the first of the last failed attempts was, Unix seconds; null if the last attempt succeeded. */
    failingSinceS: integer('failing_since_s'),
  },
  (table) => [index('webhook_by_caller').on(table.callerId)],
);

/** Deliveries of events to endpoints. */
export const webhookDelivery = sqliteTable(
  'webhook_delivery',
  {
    /** The id of the row of the endpoint. */
    webhook: integer()
      .notNull()
      .references(() => webhook.id),
    sequence: integer().notNull(),
    type: text().$type<EventType>().notNull(),
    /** What the event is about. Events of one resource are sent in order. */
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
    // With the status: otherwise SQLite prefers the primary key, and reads all deliveries of an endpoint.
    index('webhook_delivery_open')
      .on(table.webhook, table.resource, table.sequence, table.status)
      .where(sql`${table.status} IN ('PENDING', 'WAITING')`),
  ],
);
