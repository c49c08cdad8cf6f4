import { type Event, eventRetentionS, resourceOf } from '../../domain/event.ts';
import {
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
import { createDeliveryRows } from './delivery-rows.ts';
import type { EventReads } from './events.ts';
import { readEventTypes, type WebhookRow } from './webhooks.ts';

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
  const deliveries = createDeliveryRows(database);

  /** Makes an event due, or WAITING if an earlier one of its resource is open. Returns whether that changed its delivery. */
  function send(webhook: number, event: Event, nowMs: number): boolean {
    const first = deliveries.firstOpen(webhook, resourceOf(event));
    const isFirst = first === undefined || first.sequence >= event.sequence;
    return deliveries.put(webhook, event, isFirst ? nowMs : null);
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
        sequence <= upTo && isSent(filter, type) && deliveries.statusOf(id, sequence) !== 'DELIVERED',
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
