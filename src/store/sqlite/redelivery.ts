import { and, eq, lt, sql } from 'drizzle-orm';
import { type Event, eventRetentionS, resourceOf } from '../../domain/event.ts';
import {
  type DeliveryStatus,
  eventNotKept,
  eventNotStored,
  isSent,
  timeNotKept,
  typeNotSent,
  webhookDisabled,
} from '../../domain/webhook.ts';
import type { Command } from '../store.ts';
import { type EventRange, type Redelivered, redeliveredPerRequest } from '../webhook-commands.ts';
import type { Database } from './connection.ts';
import type { EventReads } from './events.ts';
import { webhookDelivery } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';
import { isOpen, readEventTypes, type WebhookRow } from './webhooks.ts';

type Which = Command<'Redeliver'>['which'];

/** The members of an endpoint that a redelivery needs. */
type Receiver = Pick<WebhookRow, 'id' | 'callerId' | 'eventTypes' | 'status' | 'cursor'>;

/** The progress of a redelivery, and whether it changed anything. */
type Redelivery = Redelivered & { readonly isChanged: boolean };

/** Prepares the command `Redeliver`. */
export function createRedelivery(
  database: Database,
  events: EventReads,
): (webhook: Receiver, which: Which, nowMs: number) => Redelivery {
  const { selectStatus, selectEarlier, put } = prepareStatements(database);

  /** Makes an event due, or WAITING if an earlier one of its resource is open. Returns whether that changed its delivery. */
  function send(webhook: number, event: Event, nowMs: number): boolean {
    const { sequence, type, atMs } = event;
    const key = { webhook, resource: resourceOf(event), sequence };
    const isFirst = selectEarlier.get(key) === undefined;
    const changed = put.run({
      ...key,
      ...{ type, eventAtS: Math.floor(atMs / 1_000), attempts: 0, lastAttemptAtMs: null },
      status: isFirst ? 'PENDING' : 'WAITING',
      nextAttemptAtMs: isFirst ? nowMs : null,
      ...{ httpStatus: null, response: null, error: null },
    });
    return changed > 0;
  }

  function sendOne(
    { id, callerId, eventTypes, cursor }: Receiver,
    sequence: number,
    nowMs: number,
  ): Redelivery {
    const newest = events.newest(callerId);
    if (sequence > newest) throw eventNotStored(newest);
    const event = events.at(callerId, sequence);
    if (event === undefined) throw eventNotKept();
    if (!isSent(readEventTypes(eventTypes), event.type)) throw typeNotSent(event.type);
    // Events after the cursor are going to be sent anyway.
    const isChanged = sequence <= cursor && send(id, event, nowMs);
    return { count: 1, rest: undefined, isChanged };
  }

  function sendRange(webhook: Receiver, { after, upTo }: EventRange, nowMs: number): Redelivery {
    const { id, callerId, eventTypes } = webhook;
    const filter = readEventTypes(eventTypes);
    const found = after < upTo ? events.after(callerId, after, redeliveredPerRequest).events : [];
    const missed = found.filter(
      ({ type, sequence }) =>
        sequence <= upTo &&
        isSent(filter, type) &&
        selectStatus.get({ webhook: id, sequence })?.status !== 'DELIVERED',
    );
    const changed = missed.filter((event) => send(id, event, nowMs));
    const last = found.at(-1)?.sequence ?? upTo;
    const rest = last < upTo ? { after: last, upTo } : undefined;
    return { count: missed.length, rest, isChanged: changed.length > 0 };
  }

  /** The sequence before the first event at or after a time. Events are ordered by time. */
  function sequenceBefore(callerId: number, sinceMs: number): number {
    let [low, high] = [(events.oldest(callerId) ?? 1) - 1, events.newest(callerId)];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [next] = events.after(callerId, middle, 1).events;
      if (next === undefined || next.atMs >= sinceMs) high = middle;
      else low = next.sequence;
    }
    return low;
  }

  return (webhook, which, nowMs) => {
    if (webhook.status === 'DISABLED') throw webhookDisabled();
    if ('sequence' in which) return sendOne(webhook, which.sequence, nowMs);
    if ('after' in which) return sendRange(webhook, which, nowMs);
    if (which.sinceMs < nowMs - eventRetentionS * 1_000) throw timeNotKept();
    const range = { after: sequenceBefore(webhook.callerId, which.sinceMs), upTo: webhook.cursor };
    return sendRange(webhook, range, nowMs);
  };
}

function prepareStatements(database: Database) {
  const isOfWebhook = eq(webhookDelivery.webhook, sql.placeholder('webhook'));
  const selectStatus = prepareRaw<{ status: DeliveryStatus }>(
    database,
    database
      .select({ status: webhookDelivery.status })
      .from(webhookDelivery)
      .where(and(isOfWebhook, eq(webhookDelivery.sequence, sql.placeholder('sequence')))),
  );
  const selectEarlier = prepareRaw<{ sequence: number }>(
    database,
    database
      .select({ sequence: webhookDelivery.sequence })
      .from(webhookDelivery)
      .where(
        and(
          isOfWebhook,
          eq(webhookDelivery.resource, sql.placeholder('resource')),
          isOpen,
          lt(webhookDelivery.sequence, sql.placeholder('sequence')),
        ),
      )
      .limit(1),
  );
  const put = prepareRaw(
    database,
    database
      .insert(webhookDelivery)
      .values(placeholdersFor(webhookDelivery))
      .onConflictDoUpdate({
        target: [webhookDelivery.webhook, webhookDelivery.sequence],
        set: {
          status: sql`excluded.status`,
          attempts: 0,
          lastAttemptAtMs: null,
          nextAttemptAtMs: sql`excluded.next_attempt_at_ms`,
          httpStatus: null,
          response: null,
          error: null,
        },
        setWhere: sql`${webhookDelivery.status} <> excluded.status OR ${webhookDelivery.attempts} > 0
          OR ${webhookDelivery.nextAttemptAtMs} > excluded.next_attempt_at_ms`,
      }),
  );
  return { selectStatus, selectEarlier, put };
}
