import { and, eq, gt, sql } from 'drizzle-orm';
import { type Event, eventRetentionS, resourceOf } from '../../domain/event.ts';
import { failingMaxS, isSent } from '../../domain/webhook.ts';
import type { DeliveryResult, DueDelivery, WebhookWork } from '../webhook-commands.ts';
import { createDeliveryRows, type DeliveryRows } from './delivery-rows.ts';
import type { EventReads } from './events.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { oldestFirst, pageOf } from './paging.ts';
import type { Parts } from './parts.ts';
import { caller, webhook } from './schema.ts';
import { type Database, placeholders, prepare } from './statement.ts';
import type { TrustedClock } from './trusted-clock.ts';
import { toWebhook, type WebhookRow } from './webhooks.ts';

/** Events that one claim passes, sent or not. Other requests wait for the thread meanwhile. */
const passedMax = 256;

/** Expired deliveries deleted per recorded attempt: twice as many as are added. */
const sweptPerOutcome = 2;

/** Expired deliveries deleted of one further endpoint, which may have no attempts any more. */
const sweptElsewhere = 16;

/** Handlers of webhook delivery. */
export function createDeliveryHandlers(
  parts: Parts,
): Handlers<'ListSending' | 'ClaimDeliveries' | 'RecordAttempts'> {
  const { database, webhooks: rows, events, clock } = parts;
  const deliveries = createDeliveryRows(database);
  const endpoints = createEndpoints(database);
  const takeWork = createClaims(deliveries, endpoints, events);
  const record = createResults(parts, deliveries, endpoints);
  const sweep = createSweep(deliveries, endpoints, clock);

  return {
    ListSending: reads(({ page }) => {
      const isSending = and(eq(webhook.status, 'ENABLED'), eq(caller.status, 'ACTIVE'));
      return pageOf(oldestFirst(rows.select(), webhook.id, page, isSending), page, (row) => ({
        ...toWebhook(row),
        nextDueAtMs: deliveries.pending(row.id, 1)[0]?.nextAttemptAtMs ?? null,
      }));
    }),
    ClaimDeliveries: writes(({ id, nowMs, limit, underWay }) => {
      const row = rows.byId(id);
      return row?.status === 'ENABLED' && row.callerStatus === 'ACTIVE'
        ? takeWork(row, { nowMs, limit, underWay: new Set(underWay) })
        : { webhook: undefined, due: [], hasMore: false };
    }),
    RecordAttempts: writes(({ outcomes }) => {
      const led = outcomes.map((outcome) => ({ id: outcome.id, to: record(outcome) }));
      sweep(outcomes);
      const idsOf = (what: 'DISABLED' | 'RELEASED') =>
        led.filter(({ to }) => to === what).map(({ id }) => id);
      return { disabled: idsOf('DISABLED'), released: idsOf('RELEASED') };
    }),
  };
}

/** A claim. */
interface Wanted {
  readonly nowMs: number;
  readonly limit: number;
  readonly underWay: ReadonlySet<number>;
}

/** Returns the function that claims what an endpoint can be sent now. */
function createClaims(deliveries: DeliveryRows, { moveCursor }: Endpoints, events: EventReads) {
  /** Returns the event of a due delivery. If it cannot be sent now, sets the delivery to WAITING or FAILED. */
  function sendable(
    { callerId, id }: WebhookRow,
    due: ReturnType<DeliveryRows['pending']>[number],
    nowMs: number,
  ): Event | undefined {
    const { sequence, resource } = due;
    if (deliveries.firstOpen(id, resource)?.sequence !== sequence) {
      deliveries.makeWait(id, sequence);
      deliveries.release(id, resource, nowMs);
      return undefined;
    }
    const event = events.at(callerId, sequence);
    if (event !== undefined) return event;
    deliveries.giveUp(id, sequence, 'the event has expired');
    deliveries.release(id, resource, nowMs);
    return undefined;
  }

  /** Takes retries that are due, and returns when the next one is. */
  function takeRetries(row: WebhookRow, { nowMs, limit, underWay }: Wanted) {
    const taken: DueDelivery[] = [];
    deliveries.capDueTimes(row.id, nowMs);
    for (const due of deliveries.pending(row.id, limit + underWay.size + 1)) {
      if (underWay.has(due.sequence)) continue;
      const { nextAttemptAtMs, attempts } = due;
      if (nextAttemptAtMs > nowMs || taken.length === limit) return { taken, nextDueAtMs: nextAttemptAtMs };
      const event = sendable(row, due, nowMs);
      if (event !== undefined) taken.push({ event: { ...event, caller: row.caller }, attempts });
    }
    return { taken, nextDueAtMs: null };
  }

  /** Takes events after the cursor and advances it. Returns whether there are more. */
  function takeNew(row: WebhookRow, nowMs: number, limit: number) {
    const { id, callerId, caller } = row;
    const { eventTypes } = toWebhook(row);
    const taken: DueDelivery[] = [];
    const most = eventTypes === undefined ? limit : passedMax;
    let { cursor } = row;
    for (const event of limit > 0 ? events.after(callerId, cursor, most).events : []) {
      cursor = event.sequence;
      if (!isSent(eventTypes, event.type)) continue;
      const isFirst = deliveries.firstOpen(id, resourceOf(event)) === undefined;
      deliveries.put(id, event, isFirst ? nowMs : null);
      if (isFirst) taken.push({ event: { ...event, caller }, attempts: 0 });
      if (taken.length === limit) break;
    }
    if (cursor !== row.cursor) moveCursor.run({ id, cursor });
    return { taken, hasMore: cursor < events.newest(callerId) };
  }

  return function takeWork(row: WebhookRow, wanted: Wanted): WebhookWork {
    const { nowMs, limit } = wanted;
    const retries = takeRetries(row, wanted);
    const fresh = takeNew(row, nowMs, limit - retries.taken.length);
    const isMoreDue = retries.nextDueAtMs !== null && retries.nextDueAtMs <= nowMs;
    return {
      webhook: { ...toWebhook(row), nextDueAtMs: retries.nextDueAtMs },
      due: [...retries.taken, ...fresh.taken],
      hasMore: isMoreDue || fresh.hasMore,
    };
  };
}

/** Returns the function that records one attempt. */
function createResults(
  { webhooks: rows, outbox }: Parts,
  deliveries: DeliveryRows,
  { setFailing }: Endpoints,
) {
  /** Returns why an attempt disables its endpoint, if it does. Records since when attempts fail. */
  function faultOf({ id, failingSinceS }: WebhookRow, outcome: DeliveryResult): string | undefined {
    const atS = Math.floor(outcome.atMs / 1_000);
    if (outcome.isDelivered) {
      if (failingSinceS !== null) setFailing.run({ id, failingSinceS: null });
      return undefined;
    }
    // A later time comes from before the clock was set back.
    const sinceS = Math.min(failingSinceS ?? atS, atS);
    if (sinceS !== failingSinceS) setFailing.run({ id, failingSinceS: sinceS });
    if (outcome.disables !== undefined) return outcome.disables;
    return atS - sinceS >= failingMaxS ? 'every attempt failed for five days' : undefined;
  }

  function disable({ id, callerId, webhookId }: WebhookRow, why: string, atMs: number): void {
    rows.disable(id, why);
    outbox.add({ type: 'webhook.disabled', callerId, atMs, webhookId });
  }

  /** Records one attempt. Returns its effect on the endpoint. */
  return function record(outcome: DeliveryResult): 'DISABLED' | 'RELEASED' | undefined {
    const { id, atMs } = outcome;
    const row = rows.byId(id);
    if (row === undefined) return undefined;
    const isEnabled = row.status === 'ENABLED';
    const resource = deliveries.record(outcome, isEnabled);
    if (!isEnabled) return undefined;
    const fault = faultOf(row, outcome);
    if (fault !== undefined) {
      disable(row, fault, atMs);
      return 'DISABLED';
    }
    const isReleased =
      outcome.retryAtMs === null && resource !== undefined && deliveries.release(id, resource, outcome.atMs);
    return isReleased ? 'RELEASED' : undefined;
  };
}

/** Returns the function that deletes expired deliveries after attempts. */
function createSweep(deliveries: DeliveryRows, { next }: Endpoints, clock: Pick<TrustedClock, 'notAfter'>) {
  /** The id of the endpoint that was swept last besides those of the attempts. */
  let swept = 0;

  return function sweep(outcomes: readonly DeliveryResult[]): void {
    const newestMs = outcomes.at(-1)?.atMs;
    if (newestMs === undefined) return;
    const beforeS = clock.notAfter(Math.floor(newestMs / 1_000)) - eventRetentionS;
    for (const [id, own] of Map.groupBy(outcomes, (outcome) => outcome.id))
      deliveries.sweep(id, beforeS, sweptPerOutcome * own.length);
    swept = (next.get({ id: swept }) ?? next.get({ id: 0 }))?.id ?? 0;
    deliveries.sweep(swept, beforeS, sweptElsewhere);
  };
}

type Endpoints = ReturnType<typeof createEndpoints>;

/** Prepares the statements on endpoints. */
function createEndpoints(database: Database) {
  const isNamed = eq(webhook.id, sql.placeholder('id'));
  return prepare(database, {
    moveCursor: database.update(webhook).set(placeholders('cursor')).where(isNamed),
    setFailing: database.update(webhook).set(placeholders('failingSinceS')).where(isNamed),
    /** The endpoint after this one. */
    next: database
      .select({ id: webhook.id })
      .from(webhook)
      .where(gt(webhook.id, sql.placeholder('id')))
      .limit(1),
  });
}
