import { and, eq, getTableColumns, sql } from 'drizzle-orm';
import type { PlatformStatus } from '../../domain/caller.ts';
import { fieldError } from '../../domain/violation.ts';
import { type EventFilter, typesIn } from '../../domain/webhook.ts';
import { caller, webhook, webhookDelivery } from '../engine/schema.ts';
import { type Database, named, prepare } from '../engine/statement.ts';
import type { StoredWebhook, WebhookName } from '../webhook-commands.ts';

/** The columns of a WebhookRow, from webhook joined with its caller. */
const webhookColumns = { ...getTableColumns(webhook), caller: caller.name, callerStatus: caller.status };

/** A row of an endpoint. */
export type WebhookRow = Omit<StoredWebhook, 'eventTypes'> & {
  /** The types, each followed by a space; empty for all. */
  readonly eventTypes: string;
  readonly callerStatus: PlatformStatus;
  /** The cursor: up to this sequence, each event has its delivery or is filtered out. */
  readonly cursor: number;
};

/** The endpoint of a row, without what only sending needs. */
export function toWebhook({ cursor: _, callerStatus: _1, eventTypes, ...row }: WebhookRow): StoredWebhook {
  return { ...row, eventTypes: readEventTypes(eventTypes) };
}

/** Which events an endpoint is sent, as the tables have it. */
export const writeEventTypes = (filter: EventFilter): string =>
  (filter ?? []).map((type) => `${type} `).join('');

/** Reads what `writeEventTypes` wrote. */
export const readEventTypes = (words: string): EventFilter =>
  words === '' ? undefined : typesIn(words.split(' '));

/** Whether a delivery is open. A literal, so that SQLite can use the partial index. */
export const isOpen = sql`${webhookDelivery.status} IN ('PENDING', 'WAITING')`;

/** Whether an endpoint is enabled, and its last attempt did not fail. */
export const isHealthy = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NULL`;

/** When the first PENDING delivery of an endpoint is due. */
const nextDueAtMs = sql<number | null>`(SELECT min(${webhookDelivery.nextAttemptAtMs}) FROM ${webhookDelivery}
  WHERE ${webhookDelivery.webhook} = ${webhook.id} AND ${webhookDelivery.status} = 'PENDING')`;

/** The rows of endpoints. They change rarely, so only the statements for sending are prepared. */
export type WebhookRows = ReturnType<typeof createWebhookRows>;

export function createWebhookRows(database: Database) {
  /** A query of all endpoints, to add conditions to. */
  const select = () =>
    database
      .select(webhookColumns)
      .from(webhook)
      .innerJoin(caller, eq(caller.id, webhook.callerId))
      .$dynamic();
  const { selectById } = prepare(database, {
    selectById: database
      .select(named(webhookColumns))
      .from(webhook)
      .innerJoin(caller, eq(caller.id, webhook.callerId))
      .where(eq(webhook.id, sql.placeholder('id'))),
  });
  return {
    select,
    /** Likewise, with what sending needs. */
    selectSending: () =>
      database
        .select({ ...webhookColumns, nextDueAtMs })
        .from(webhook)
        .innerJoin(caller, eq(caller.id, webhook.callerId))
        .$dynamic(),
    /** Throws WEBHOOK_NOT_FOUND. */
    find: async ({ webhookId, owner }: WebhookName): Promise<WebhookRow> => {
      const isOwn = owner === undefined ? undefined : eq(webhook.callerId, owner);
      const row = await select()
        .where(and(eq(webhook.webhookId, webhookId), isOwn))
        .get();
      if (row === undefined) throw fieldError('WEBHOOK_NOT_FOUND', 'webhookId', 'names no webhook.');
      return row;
    },
    /** The endpoint with a row id; undefined if it was deleted. */
    byId: (id: number): Promise<WebhookRow | undefined> => selectById.get({ id }),
    /** Disables an endpoint and sets its open deliveries to FAILED. `why` is for its owner. */
    disable: async (id: number, why: string): Promise<void> => {
      await database
        .update(webhook)
        .set({ status: 'DISABLED', disabledReason: why })
        .where(eq(webhook.id, id))
        .run();
      await database
        .update(webhookDelivery)
        .set({
          status: 'FAILED',
          nextAttemptAtMs: null,
          // A delivery that was tried keeps the error of its last attempt.
          error: sql`coalesce(${webhookDelivery.error}, ${`the webhook was disabled: ${why}`})`,
        })
        .where(and(eq(webhookDelivery.webhook, id), isOpen))
        .run();
    },
  };
}
