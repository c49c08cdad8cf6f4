import {
  and,
  count,
  desc,
  eq,
  getTableColumns,
  gte,
  inArray,
  isNotNull,
  lt,
  type SQL,
  sql,
} from 'drizzle-orm';
import type { Actor } from '../../domain/audit-entry.ts';
import { type Event, eventRetentionS, resourceOf } from '../../domain/event.ts';
import { ApiError } from '../../domain/reason.ts';
import { fieldError } from '../../domain/violation.ts';
import { isSent, webhooksMax } from '../../domain/webhook.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { newestFirst, oldestFirst, pageOf } from '../engine/paging.ts';
import { deployment, webhook, webhookDelivery } from '../engine/schema.ts';
import { equalsWithoutIndex } from '../engine/statement.ts';
import type { Command } from '../store.ts';
import {
  deletedPerRequest,
  type EventRange,
  type Redelivered,
  redeliveredPerRequest,
  type StoredDelivery,
  type StoredWebhook,
  type WebhookChange,
  type WebhookCommands,
  type WebhookOperator,
} from '../webhook-commands.ts';
import { createDeliveryRows } from './delivery-rows.ts';
import type { Parts } from './parts.ts';
import { readEventTypes, toWebhook, type WebhookRow, writeEventTypes } from './webhooks.ts';

const {
  webhook: _,
  resource: _1,
  eventAtS: _2,
  response: answer,
  ...others
} = getTableColumns(webhookDelivery);
/** The columns of a StoredDelivery. */
const deliveryColumns = { ...others, answer };

/** Deliveries that a page with a status filter reads, at most. The page may then be short without being the last. */
const listedMax = 10_000;

type ManagingCommands = Exclude<keyof WebhookCommands, 'ListSending' | 'ClaimDeliveries' | 'RecordAttempts'>;

/** Handlers of the commands that manage endpoints. */
export function createWebhookHandlers(parts: Parts): Handlers<ManagingCommands> {
  const { database, webhooks: rows, events, recordAudit } = parts;
  const webhooksOf = async (owner: number): Promise<number> => {
    const isOwn = eq(webhook.callerId, owner);
    const counted = await database.select({ webhooks: count() }).from(webhook).where(isOwn).get();
    return counted?.webhooks ?? 0;
  };

  return {
    AddWebhook: writes(
      async ({ owner, webhook: { eventTypes, sealedSecret, origin, sealedUrl, ...given } }) => {
        if ((await webhooksOf(owner)) >= webhooksMax) {
          const message = `A caller has ${webhooksMax} webhooks at most: delete one first.`;
          throw new ApiError('WEBHOOKS_EXHAUSTED', message);
        }
        const { id } = await database
          .update(deployment)
          .set({ newestWebhook: sql`${deployment.newestWebhook} + 1` })
          .returning({ id: deployment.newestWebhook })
          .get();
        await database
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
            cursor: await events.newest(owner),
          })
          .run();
        return toWebhook(await rows.find({ webhookId: given.webhookId, owner }));
      },
    ),
    ListWebhooks: reads(async ({ owner, status, isFailing = false, page }) => {
      const isOwn = owner === undefined ? undefined : eq(webhook.callerId, owner);
      const hasStatus = status === undefined ? undefined : eq(webhook.status, status);
      const fails = isFailing
        ? and(eq(webhook.status, 'ENABLED'), isNotNull(webhook.failingSinceS))
        : undefined;
      const isListed = and(isOwn, hasStatus, fails);
      return pageOf(await oldestFirst(rows.select(), webhook.id, page, isListed), page, toWebhook);
    }),
    FindWebhook: reads(async (name) => toWebhook(await rows.find(name))),
    BeginWebhookTest: reads(async ({ eventId, ...name }) => ({
      eventId,
      webhook: toWebhook(await rows.find(name)),
    })),
    EndWebhookTest: reads(({ eventId, result }) => ({ eventId, result })),
    ChangeWebhook: createChange(parts),
    RotateWebhookSecret: writes(async ({ sealedSecret, previousEndsAtS, by, ...name }) => {
      const row = await rows.find(name);
      if (Buffer.compare(row.sealedSecret, sealedSecret) === 0) return toWebhook(row);
      const previousSecret = Buffer.from(row.sealedSecret);
      await database
        .update(webhook)
        .set({ sealedSecret: Buffer.from(sealedSecret), previousSecret, previousEndsAtS })
        .where(eq(webhook.id, row.id))
        .run();
      const operator = operatorOf(by, row);
      if (operator !== undefined)
        await recordAudit(operator, 'webhook rotate-secret', row.webhookId, { after: { previousEndsAtS } });
      return toWebhook(await rows.find(name));
    }),
    DeleteWebhook: writes(async ({ by, ...name }) => {
      const row = await rows.find(name);
      const some = database
        .select({ sequence: webhookDelivery.sequence })
        .from(webhookDelivery)
        .where(eq(webhookDelivery.webhook, row.id))
        .limit(deletedPerRequest);
      const deleted = await database
        .delete(webhookDelivery)
        .where(and(eq(webhookDelivery.webhook, row.id), inArray(webhookDelivery.sequence, some)))
        .returning({ sequence: webhookDelivery.sequence })
        .all();
      if (deleted.length === deletedPerRequest) return { isDone: false };
      await database.delete(webhook).where(eq(webhook.id, row.id)).run();
      const operator = operatorOf(by, row);
      if (operator !== undefined)
        await recordAudit(operator, 'webhook delete', row.webhookId, { before: auditedWebhook(row) });
      return { isDone: true };
    }),
    ...createDeliveryLists(parts),
  };
}

/** The handler that changes an endpoint. */
function createChange(parts: Parts): Handlers['ChangeWebhook'] {
  const { database, webhooks: rows, events, recordAudit, outbox, clock } = parts;

  /** Enables or disables an endpoint. If an operator disables it, its owner gets an event. */
  async function setStatus(
    { id, callerId, webhookId }: WebhookRow,
    status: StoredWebhook['status'],
    operator: Actor | undefined,
  ): Promise<void> {
    if (status === 'ENABLED') {
      const reset = { cursor: await events.newest(callerId), failingSinceS: null, disabledReason: null };
      await database
        .update(webhook)
        .set({ status, ...reset })
        .where(eq(webhook.id, id))
        .run();
      return;
    }
    await rows.disable(id, operator === undefined ? 'a call disabled it' : 'an operator disabled it');
    if (operator === undefined) return;
    const atMs = (operator.atS + (await clock.aheadS())) * 1_000;
    outbox.add({ type: 'webhook.disabled', callerId, atMs, webhookId });
  }

  async function set(row: WebhookRow, { url, eventTypes, description }: WebhookChange): Promise<void> {
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
      await database.update(webhook).set(changed).where(eq(webhook.id, row.id)).run();
  }

  return writes(async ({ change, by, ...name }) => {
    const before = await rows.find(name);
    const operator = operatorOf(by, before);
    await set(before, change);
    const { status = before.status } = change;
    if (status !== before.status) await setStatus(before, status, operator);
    const after = await rows.find(name);
    const hasNewUrl = Buffer.compare(before.sealedUrl, after.sealedUrl) !== 0;
    const isChanged = hasNewUrl || changeable.some((member) => before[member] !== after[member]);
    if (operator !== undefined && isChanged) {
      const values = { before: auditedWebhook(before), after: auditedWebhook(after) };
      await recordAudit(operator, actionOf(before, after), before.webhookId, values);
    }
    return toWebhook(after);
  });
}

/** Handlers that list deliveries and send events again. */
function createDeliveryLists(parts: Parts): Handlers<'ListDeliveries' | 'Redeliver'> {
  const { database, webhooks: rows, recordAudit } = parts;
  const redeliver = createRedelivery(parts);

  /** The sequence of the last delivery that a page with a status filter reads; undefined if it reads all. */
  async function lastLookedAt(isListed: SQL | undefined): Promise<number | undefined> {
    const last = await database
      .select({ sequence: webhookDelivery.sequence })
      .from(webhookDelivery)
      .where(isListed)
      .orderBy(desc(webhookDelivery.sequence))
      .limit(1)
      .offset(listedMax - 1)
      .get();
    return last?.sequence;
  }

  return {
    ListDeliveries: reads(async ({ status, page, ...name }) => {
      const { id, callerId } = await rows.find(name);
      const isAfterCursor = page.from === undefined ? undefined : lt(webhookDelivery.sequence, page.from);
      const isListed = and(eq(webhookDelivery.webhook, id), isAfterCursor);
      const last = status === undefined ? undefined : await lastLookedAt(isListed);
      const isRead = last === undefined ? undefined : gte(webhookDelivery.sequence, last);
      const hasStatus = status === undefined ? undefined : equalsWithoutIndex(webhookDelivery.status, status);
      const deliveries = database
        .select({ ...deliveryColumns, id: webhookDelivery.sequence })
        .from(webhookDelivery)
        .$dynamic();
      const isShown = and(isListed, isRead, hasStatus);
      const found = await newestFirst(deliveries, webhookDelivery.sequence, page, isShown);
      const { items, next } = await pageOf(
        found,
        page,
        ({ id: _, ...delivery }): StoredDelivery => ({
          callerId,
          ...delivery,
        }),
      );
      return { items, next: next ?? last };
    }),
    Redeliver: writes(async ({ which, counted = 0, nowMs, by, ...name }) => {
      const row = await rows.find(name);
      const { count, rest, isChanged } = await redeliver(row, which, nowMs);
      const operator = operatorOf(by, row);
      if (operator !== undefined && isChanged)
        await recordAudit(operator, 'webhook redeliver', row.webhookId, { after: { ...which, count } });
      return { count: counted + count, rest };
    }),
  };
}

/** The progress of a redelivery, and whether it changed anything. */
type Redelivery = Redelivered & { readonly isChanged: boolean };

function createRedelivery({
  database,
  events,
}: Parts): (webhook: WebhookRow, which: Command<'Redeliver'>['which'], nowMs: number) => Promise<Redelivery> {
  const deliveries = createDeliveryRows(database);

  /** Makes an event due, or WAITING if an earlier one of its resource is open. Returns whether that changed its delivery. */
  async function send(webhook: number, event: Event, nowMs: number): Promise<boolean> {
    const first = await deliveries.firstOpen(webhook, resourceOf(event));
    const isFirst = first === undefined || first.sequence >= event.sequence;
    return deliveries.put(webhook, event, isFirst ? nowMs : null);
  }

  async function sendOne(
    { id, callerId, eventTypes, cursor }: WebhookRow,
    sequence: number,
    nowMs: number,
  ): Promise<Redelivery> {
    const newest = await events.newest(callerId);
    if (sequence > newest) {
      const rule = `must be at most ${newest}, the sequence of the newest event`;
      throw fieldError('VALIDATION_FAILED', 'sequence', rule);
    }
    const event = await events.at(callerId, sequence);
    if (event === undefined)
      throw fieldError('EVENTS_EXPIRED', 'sequence', 'is of an expired event: events are kept for 30 days');
    if (!isSent(readEventTypes(eventTypes), event.type)) {
      const rule = `names an event of type ${event.type}, to which the webhook does not subscribe`;
      throw fieldError('VALIDATION_FAILED', 'sequence', rule);
    }
    // Events after the cursor are going to be sent anyway.
    const isChanged = sequence <= cursor && (await send(id, event, nowMs));
    return { count: 1, rest: undefined, isChanged };
  }

  async function sendRange(
    webhook: WebhookRow,
    { after, upTo }: EventRange,
    nowMs: number,
  ): Promise<Redelivery> {
    const { id, callerId, eventTypes } = webhook;
    const filter = readEventTypes(eventTypes);
    const found = after < upTo ? (await events.after(callerId, after, redeliveredPerRequest)).events : [];
    const missed: Event[] = [];
    for (const event of found) {
      const { type, sequence } = event;
      const isMeant = sequence <= upTo && isSent(filter, type);
      if (isMeant && (await deliveries.statusOf(id, sequence)) !== 'DELIVERED') missed.push(event);
    }
    let isChanged = false;
    for (const event of missed) if (await send(id, event, nowMs)) isChanged = true;
    const last = found.at(-1)?.sequence ?? upTo;
    const rest = last < upTo ? { after: last, upTo } : undefined;
    return { count: missed.length, rest, isChanged };
  }

  return async (webhook, which, nowMs) => {
    if (webhook.status === 'DISABLED')
      throw new ApiError('WEBHOOK_DISABLED', 'The webhook is disabled: enable it first.');
    if ('sequence' in which) return sendOne(webhook, which.sequence, nowMs);
    if ('after' in which) return sendRange(webhook, which, nowMs);
    if (which.sinceMs < nowMs - eventRetentionS * 1_000) {
      const rule = 'must not be more than 30 days ago: events are kept for 30 days';
      throw fieldError('EVENTS_EXPIRED', 'since', rule);
    }
    const range = { after: await events.before(webhook.callerId, which.sinceMs), upTo: webhook.cursor };
    return sendRange(webhook, range, nowMs);
  };
}

/** Who changes an endpoint of another caller; undefined if its owner does. */
const operatorOf = (by: WebhookOperator | undefined, { callerId }: WebhookRow): Actor | undefined =>
  by?.callerId === callerId ? undefined : by;

const actionOf = (before: WebhookRow, after: WebhookRow): string =>
  before.status === after.status
    ? 'webhook set'
    : after.status === 'ENABLED'
      ? 'webhook enable'
      : 'webhook disable';

/** Members that ChangeWebhook can change, beside the URL. */
const changeable = ['eventTypes', 'description', 'status'] as const;

/** An endpoint as the audit log shows it. Path and query of the URL may hold secrets, so only its origin is in it. */
const auditedWebhook = ({ caller: owner, origin, eventTypes, description, status }: WebhookRow) => ({
  caller: owner,
  url: origin,
  eventTypes: readEventTypes(eventTypes) ?? ['*'],
  description,
  status,
});
