import { and, asc, count, desc, eq, gt, gte, inArray, lt, type SQL, sql } from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import { webhooksExhausted, webhooksMax } from '../../domain/webhook.ts';
import {
  deletedPerUnit,
  type StoredDelivery,
  type StoredWebhook,
  type WebhookChange,
  type WebhookCommands,
} from '../webhook-commands.ts';
import type { RecordAudit } from './audit-log.ts';
import type { Database } from './connection.ts';
import type { EventReads } from './events.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import type { Outbox } from './outbox.ts';
import { pageOf, rowsFor } from './paging.ts';
import { createRedelivery } from './redelivery.ts';
import { deployment, webhook, webhookDelivery } from './schema.ts';
import { equalsWithoutIndex } from './statement.ts';
import { readEventTypes, toWebhook, type WebhookRow, type WebhookRows, writeEventTypes } from './webhooks.ts';

/** The columns of a StoredDelivery. */
const deliveryColumns = {
  sequence: webhookDelivery.sequence,
  type: webhookDelivery.type,
  status: webhookDelivery.status,
  attempts: webhookDelivery.attempts,
  lastAttemptAtMs: webhookDelivery.lastAttemptAtMs,
  nextAttemptAtMs: webhookDelivery.nextAttemptAtMs,
  httpStatus: webhookDelivery.httpStatus,
  answer: webhookDelivery.response,
  error: webhookDelivery.error,
};

/** Deliveries that a page of those of one status looks at, at most: it may then be short, and not the last. */
const listedMax = 10_000;

/** The commands by which endpoints are managed. */
type ManagingCommands = Exclude<keyof WebhookCommands, 'ListSending' | 'ClaimDeliveries' | 'RecordAttempts'>;

/** Handlers of managing endpoints. */
export function createWebhookHandlers(
  database: Database,
  rows: WebhookRows,
  events: EventReads,
  recordAudit: RecordAudit,
  outbox: Outbox,
): Handlers<ManagingCommands> {
  const redeliver = createRedelivery(database, events);

  const webhooksOf = (owner: number): number =>
    database.select({ webhooks: count() }).from(webhook).where(eq(webhook.callerId, owner)).get()?.webhooks ??
    0;

  /** Sets whether it is sent anything, and tells whoever owns it if that is not who does it. */
  function setStatus(
    { id, callerId, webhookId }: WebhookRow,
    status: StoredWebhook['status'],
    by: Actor | undefined,
  ): void {
    if (status === 'ENABLED') {
      const anew = { cursor: events.newest(callerId), failingSinceS: null, disabledReason: null };
      database
        .update(webhook)
        .set({ status, ...anew })
        .where(eq(webhook.id, id))
        .run();
      return;
    }
    rows.disable(id, by === undefined ? 'a call disabled it' : 'an operator disabled it');
    if (by !== undefined)
      outbox.tell({ type: 'webhook.disabled', callerId, atMs: by.atS * 1_000, webhookId });
  }

  /** The sequence of the last delivery that a page of those of one status looks at; undefined if it looks at all. */
  const lastLookedAt = (isListed: SQL | undefined): number | undefined =>
    database
      .select({ sequence: webhookDelivery.sequence })
      .from(webhookDelivery)
      .where(isListed)
      .orderBy(desc(webhookDelivery.sequence))
      .limit(1)
      .offset(listedMax - 1)
      .get()?.sequence;

  function set(row: WebhookRow, { url, eventTypes, description }: WebhookChange): void {
    const changed = {
      ...(url !== undefined && {
        ...{ origin: url.origin, sealedUrl: Buffer.from(url.sealedUrl), failingSinceS: null },
      }),
      ...(eventTypes !== undefined && {
        eventTypes: writeEventTypes(eventTypes === 'ALL' ? undefined : eventTypes),
      }),
      ...(description !== undefined && { description }),
    };
    if (Object.keys(changed).length > 0)
      database.update(webhook).set(changed).where(eq(webhook.id, row.id)).run();
  }

  return {
    AddWebhook: writes(({ owner, webhook: { eventTypes, sealedSecret, origin, sealedUrl, ...given } }) => {
      if (webhooksOf(owner) >= webhooksMax) throw webhooksExhausted();
      const { id } = database
        .update(deployment)
        .set({ newestWebhook: sql`${deployment.newestWebhook} + 1` })
        .returning({ id: deployment.newestWebhook })
        .get();
      database
        .insert(webhook)
        .values({
          ...given,
          id,
          callerId: owner,
          origin,
          sealedUrl: Buffer.from(sealedUrl),
          eventTypes: writeEventTypes(eventTypes),
          sealedSecret: Buffer.from(sealedSecret),
          status: 'ENABLED',
          cursor: events.newest(owner),
        })
        .run();
      return toWebhook(rows.find({ webhookId: given.webhookId, owner }));
    }),
    ListWebhooks: reads(({ owner, page }) => {
      const isOwn = owner === undefined ? undefined : eq(webhook.callerId, owner);
      const found = rows
        .select()
        .where(and(isOwn, gt(webhook.id, page.from ?? 0)))
        .orderBy(asc(webhook.id))
        .limit(rowsFor(page))
        .all();
      return pageOf(found, page, toWebhook);
    }),
    FindWebhook: reads((name) => toWebhook(rows.find(name))),
    BeginWebhookTest: reads(({ eventId, ...name }) => ({ eventId, webhook: toWebhook(rows.find(name)) })),
    EndWebhookTest: reads(({ eventId, result }) => ({ eventId, result })),
    ChangeWebhook: writes(({ change, by, ...name }) => {
      const before = rows.find(name);
      set(before, change);
      const { status = before.status } = change;
      if (status !== before.status) setStatus(before, status, by);
      const after = rows.find(name);
      if (by !== undefined && changeable.some((member) => before[member] !== after[member])) {
        const told = { before: toldOfWebhook(before), after: toldOfWebhook(after) };
        recordAudit(by, actionOf(before, after), before.webhookId, told);
      }
      return toWebhook(after);
    }),
    RotateWebhookSecret: writes(({ sealedSecret, previousEndsAtS, by, ...name }) => {
      const row = rows.find(name);
      if (Buffer.compare(row.sealedSecret, sealedSecret) === 0) return toWebhook(row);
      const previousSecret = Buffer.from(row.sealedSecret);
      database
        .update(webhook)
        .set({ sealedSecret: Buffer.from(sealedSecret), previousSecret, previousEndsAtS })
        .where(eq(webhook.id, row.id))
        .run();
      if (by !== undefined)
        recordAudit(by, 'webhook rotate-secret', row.webhookId, { after: { previousEndsAtS } });
      return toWebhook(rows.find(name));
    }),
    DeleteWebhook: writes(({ by, ...name }) => {
      const row = rows.find(name);
      const some = database
        .select({ sequence: webhookDelivery.sequence })
        .from(webhookDelivery)
        .where(eq(webhookDelivery.webhook, row.id))
        .limit(deletedPerUnit);
      const { changes } = database
        .delete(webhookDelivery)
        .where(and(eq(webhookDelivery.webhook, row.id), inArray(webhookDelivery.sequence, some)))
        .run();
      if (changes === deletedPerUnit) return { isDone: false };
      database.delete(webhook).where(eq(webhook.id, row.id)).run();
      if (by !== undefined) recordAudit(by, 'webhook delete', row.webhookId, { before: toldOfWebhook(row) });
      return { isDone: true };
    }),
    ListDeliveries: reads(({ status, page, ...name }) => {
      const { id, callerId } = rows.find(name);
      const isBehind = page.from === undefined ? undefined : lt(webhookDelivery.sequence, page.from);
      const isListed = and(eq(webhookDelivery.webhook, id), isBehind);
      const last = status === undefined ? undefined : lastLookedAt(isListed);
      const isLookedAt = last === undefined ? undefined : gte(webhookDelivery.sequence, last);
      const isAsked = status === undefined ? undefined : equalsWithoutIndex(webhookDelivery.status, status);
      const found = database
        .select({ ...deliveryColumns, id: webhookDelivery.sequence })
        .from(webhookDelivery)
        .where(and(isListed, isLookedAt, isAsked))
        .orderBy(desc(webhookDelivery.sequence))
        .limit(rowsFor(page))
        .all();
      const toItem = ({ id: _, ...delivery }: (typeof found)[number]) => ({ callerId, ...delivery });
      const { items, next } = pageOf<(typeof found)[number], StoredDelivery>(found, page, toItem);
      return { items, next: next ?? last };
    }),
    Redeliver: writes(({ which, counted = 0, nowMs, by, ...name }) => {
      const row = rows.find(name);
      const { count, rest, isChanged } = redeliver(row, which, nowMs);
      if (by !== undefined && isChanged)
        recordAudit(by, 'webhook redeliver', row.webhookId, { after: { ...which, count } });
      return { count: counted + count, rest };
    }),
  };
}

const actionOf = (before: WebhookRow, after: WebhookRow): string =>
  before.status === after.status
    ? 'webhook set'
    : after.status === 'ENABLED'
      ? 'webhook enable'
      : 'webhook disable';

/** What of an endpoint can be changed. */
const changeable = ['origin', 'eventTypes', 'description', 'status'] as const;

/** What acts tell of an endpoint: never a secret, which its URL may have in path and query. */
const toldOfWebhook = ({ caller: owner, origin, eventTypes, description, status }: WebhookRow) => ({
  caller: owner,
  url: origin,
  eventTypes: readEventTypes(eventTypes) ?? ['*'],
  description,
  status,
});
