import { and, asc, eq, gt, sql } from 'drizzle-orm';
import { type Event, eventRetentionS, resourceOf } from '../../domain/event.ts';
import { failingMaxS, isSent } from '../../domain/webhook.ts';
import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { oldestFirst, pageOf } from '../engine/paging.ts';
import { caller, webhook } from '../engine/schema.ts';
import { type Database, placeholders, prepare } from '../engine/statement.ts';
import type { DeliveryResult, DueDelivery, WebhookWork } from '../webhook-commands.ts';
import { createDeliveryRows, type DeliveryRows } from './delivery-rows.ts';
import type { Parts } from './parts.ts';
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
    ListSending: reads(async ({ page }) => {
      const isSending = and(eq(webhook.status, 'ENABLED'), eq(caller.status, 'ACTIVE'));
      const sending = await oldestFirst(rows.selectSending(), webhook.id, page, isSending);
      return pageOf(sending, page, ({ nextDueAtMs, ...row }) => ({ ...toWebhook(row), nextDueAtMs }));
    }),
    ClaimDeliveries: writes(async ({ id, nowMs, limit, underWay }) => {
      const row = await rows.byId(id);
      return row?.status === 'ENABLED' && row.callerStatus === 'ACTIVE'
        ? takeWork(row, { nowMs, limit, underWay: new Set(underWay) })
        : { webhook: undefined, due: [], hasMore: false };
    }),
    RecordAttempts: writes(async ({ outcomes }) => {
      const led: { readonly id: number; readonly to: Effect }[] = [];
      for (const outcome of outcomes) led.push({ id: outcome.id, to: await record(outcome) });
      await sweep(outcomes);
      const idsOf = (what: 'DISABLED' | 'RELEASED') =>
        led.filter(({ to }) => to === what).map(({ id }) => id);
      return { disabled: idsOf('DISABLED'), released: idsOf('RELEASED') };
    }),
  };
}

interface Wanted {
  readonly nowMs: number;
  readonly limit: number;
  readonly underWay: ReadonlySet<number>;
}

/** Returns the function that claims what an endpoint can be sent now. */
function createClaims(deliveries: DeliveryRows, { moveCursor }: Endpoints, events: Parts['events']) {
  /** Returns the event of a due delivery. If it cannot be sent now, sets the delivery to WAITING or FAILED. */
  async function sendable(
    { callerId, id }: WebhookRow,
    due: Awaited<ReturnType<DeliveryRows['pending']>>[number],
    nowMs: number,
  ): Promise<Event | undefined> {
    const { sequence, resource } = due;
    const first = await deliveries.firstOpen(id, resource);
    if (first?.sequence !== sequence) {
      await deliveries.makeWait(id, sequence);
      await deliveries.release(id, resource, nowMs);
      return undefined;
    }
    const event = await events.at(callerId, sequence);
    if (event !== undefined) return event;
    await deliveries.giveUp(id, sequence, 'the event has expired');
    await deliveries.release(id, resource, nowMs);
    return undefined;
  }

  /** Takes retries that are due, and returns when the next one is. */
  async function takeRetries(row: WebhookRow, { nowMs, limit, underWay }: Wanted) {
    const taken: DueDelivery[] = [];
    await deliveries.capDueTimes(row.id, nowMs);
    for (const due of await deliveries.pending(row.id, limit + underWay.size + 1)) {
      if (underWay.has(due.sequence)) continue;
      const { nextAttemptAtMs, attempts } = due;
      if (nextAttemptAtMs > nowMs || taken.length === limit) return { taken, nextDueAtMs: nextAttemptAtMs };
      const event = await sendable(row, due, nowMs);
      if (event !== undefined) taken.push({ event: { ...event, caller: row.caller }, attempts });
    }
    return { taken, nextDueAtMs: null };
  }

  /** Takes events after the cursor and advances it. Returns whether there are more. */
  async function takeNew(row: WebhookRow, nowMs: number, limit: number) {
    const { id, callerId, caller } = row;
    const { eventTypes } = toWebhook(row);
    const taken: DueDelivery[] = [];
    const most = eventTypes === undefined ? limit : passedMax;
    let { cursor } = row;
    const found = limit > 0 ? (await events.after(callerId, cursor, most)).events : [];
    for (const event of found) {
      cursor = event.sequence;
      if (!isSent(eventTypes, event.type)) continue;
      const isFirst = (await deliveries.firstOpen(id, resourceOf(event))) === undefined;
      await deliveries.put(id, event, isFirst ? nowMs : null);
      if (isFirst) taken.push({ event: { ...event, caller }, attempts: 0 });
      if (taken.length === limit) break;
    }
    if (cursor !== row.cursor) await moveCursor.run({ id, cursor });
    return { taken, hasMore: cursor < (await events.newest(callerId)) };
  }

  return async function takeWork(row: WebhookRow, wanted: Wanted): Promise<WebhookWork> {
    const { nowMs, limit } = wanted;
    const retries = await takeRetries(row, wanted);
    const fresh = await takeNew(row, nowMs, limit - retries.taken.length);
    const isMoreDue = retries.nextDueAtMs !== null && retries.nextDueAtMs <= nowMs;
    return {
      webhook: { ...toWebhook(row), nextDueAtMs: retries.nextDueAtMs },
      due: [...retries.taken, ...fresh.taken],
      hasMore: isMoreDue || fresh.hasMore,
    };
  };
}

/** The effect of an attempt on its endpoint. */
type Effect = 'DISABLED' | 'RELEASED' | undefined;

/** Returns the function that records one attempt. */
function createResults(
  { webhooks: rows, outbox }: Parts,
  deliveries: DeliveryRows,
  { setFailing }: Endpoints,
) {
  /** Returns why an attempt disables its endpoint, if it does. Records since when attempts fail. */
  async function faultOf(
    { id, failingSinceS }: WebhookRow,
    outcome: DeliveryResult,
  ): Promise<string | undefined> {
    const atS = Math.floor(outcome.atMs / 1_000);
    if (outcome.isDelivered) {
      if (failingSinceS !== null) await setFailing.run({ id, failingSinceS: null });
      return undefined;
    }
    // A later time comes from before the clock was set back.
    const sinceS = Math.min(failingSinceS ?? atS, atS);
    if (sinceS !== failingSinceS) await setFailing.run({ id, failingSinceS: sinceS });
    if (outcome.disables !== undefined) return outcome.disables;
    return atS - sinceS >= failingMaxS ? 'every attempt failed for five days' : undefined;
  }

  return async function record(outcome: DeliveryResult): Promise<Effect> {
    const { id, atMs } = outcome;
    const row = await rows.byId(id);
    if (row === undefined) return undefined;
    const isEnabled = row.status === 'ENABLED';
    const resource = await deliveries.record(outcome, isEnabled);
    if (!isEnabled) return undefined;
    const fault = await faultOf(row, outcome);
    if (fault !== undefined) {
      await rows.disable(id, fault);
      const { callerId, webhookId } = row;
      outbox.add({ type: 'webhook.disabled', callerId, atMs, webhookId });
      return 'DISABLED';
    }
    const isReleased =
      outcome.retryAtMs === null &&
      resource !== undefined &&
      (await deliveries.release(id, resource, outcome.atMs));
    return isReleased ? 'RELEASED' : undefined;
  };
}

/** Returns the function that deletes expired deliveries after attempts. */
function createSweep(deliveries: DeliveryRows, { next }: Endpoints, clock: Parts['clock']) {
  /** The id of the endpoint that was swept last besides those of the attempts. */
  let swept = 0;

  return async function sweep(outcomes: readonly DeliveryResult[]): Promise<void> {
    const newestMs = outcomes.at(-1)?.atMs;
    if (newestMs === undefined) return;
    const beforeS = (await clock.notAfter(Math.floor(newestMs / 1_000))) - eventRetentionS;
    for (const [id, own] of Map.groupBy(outcomes, (outcome) => outcome.id))
      await deliveries.sweep(id, beforeS, sweptPerOutcome * own.length);
    const further = (await next.get({ id: swept })) ?? (await next.get({ id: 0 }));
    swept = further?.id ?? 0;
    await deliveries.sweep(swept, beforeS, sweptElsewhere);
  };
}

type Endpoints = ReturnType<typeof createEndpoints>;

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
      .orderBy(asc(webhook.id))
      .limit(1),
  });
}
