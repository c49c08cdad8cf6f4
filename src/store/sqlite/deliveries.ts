import { and, asc, eq, gt, lt, sql } from 'drizzle-orm';
import { type Event, eventRetentionS, resourceOf } from '../../domain/event.ts';
import { dueHorizonMs, failingMaxS, isSent } from '../../domain/webhook.ts';
import type { DeliveryResult, DueDelivery, SendingWebhook, WebhookWork } from '../webhook-commands.ts';
import type { Database } from './connection.ts';
import type { EventReads } from './events.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import type { Outbox } from './outbox.ts';
import { pageOf, rowsFor } from './paging.ts';
import { caller, webhook, webhookDelivery } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';
import type { TrustedClock } from './trusted-clock.ts';
import { isOpen, toWebhook, type WebhookRow, type WebhookRows } from './webhooks.ts';

/** Events that one claim passes, sent or not. Other requests wait for the thread meanwhile. */
const passedMax = 256;

/** Expired deliveries deleted per recorded attempt: twice as many as are added. */
const sweptPerOutcome = 2;

/** Expired deliveries deleted of one further endpoint, which may have no attempts any more. */
const sweptElsewhere = 16;

/** Literals, so that SQLite can use the partial index. */
const isPending = sql`${webhookDelivery.status} = 'PENDING'`;
const isOver = sql`${webhookDelivery.status} IN ('DELIVERED', 'FAILED')`;

/** Handlers of webhook delivery. */
export function createDeliveryHandlers(
  database: Database,
  rows: WebhookRows,
  events: EventReads,
  outbox: Outbox,
  dated: Pick<TrustedClock, 'notAfter'>,
): Handlers<'ListSending' | 'ClaimDeliveries' | 'RecordAttempts'> {
  const deliveries = createDeliveries(database);
  const { moveCursor, setFailing, next } = createEndpoints(database);

  function toSending(row: WebhookRow, nextDueAtMs: number | null): SendingWebhook {
    return { ...toWebhook(row), nextDueAtMs };
  }

  /** Makes the next WAITING delivery of a resource due. Returns whether there was one. */
  function release(id: number, resource: string, nowMs: number): boolean {
    const first = deliveries.firstOpen(id, resource);
    if (first?.status !== 'WAITING') return false;
    deliveries.makeDue(id, first.sequence, nowMs);
    return true;
  }

  /** Returns the event of a due delivery. If it cannot be sent now, sets the delivery to WAITING or FAILED. */
  function sendable({ callerId, id }: WebhookRow, due: DueRow, nowMs: number): Event | undefined {
    const { sequence, resource } = due;
    if (deliveries.firstOpen(id, resource)?.sequence !== sequence) {
      deliveries.makeWait(id, sequence);
      release(id, resource, nowMs);
      return undefined;
    }
    const event = events.at(callerId, sequence);
    if (event !== undefined) return event;
    deliveries.giveUp(id, sequence, 'the event has expired');
    release(id, resource, nowMs);
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
      deliveries.add(id, event, isFirst ? nowMs : null);
      if (isFirst) taken.push({ event: { ...event, caller }, attempts: 0 });
      if (taken.length === limit) break;
    }
    if (cursor !== row.cursor) moveCursor.run({ id, cursor });
    return { taken, hasMore: cursor < events.newest(callerId) };
  }

  function takeWork(row: WebhookRow, wanted: Wanted): WebhookWork {
    const { nowMs, limit } = wanted;
    const retries = takeRetries(row, wanted);
    const fresh = takeNew(row, nowMs, limit - retries.taken.length);
    const isMoreDue = retries.nextDueAtMs !== null && retries.nextDueAtMs <= nowMs;
    return {
      webhook: toSending(row, retries.nextDueAtMs),
      due: [...retries.taken, ...fresh.taken],
      hasMore: isMoreDue || fresh.hasMore,
    };
  }

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
  function record(outcome: DeliveryResult): 'DISABLED' | 'RELEASED' | undefined {
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
      outcome.retryAtMs === null && resource !== undefined && release(id, resource, outcome.atMs);
    return isReleased ? 'RELEASED' : undefined;
  }

  /** The id of the endpoint that was swept last besides those of the attempts. */
  let swept = 0;

  function sweep(outcomes: readonly DeliveryResult[]): void {
    const newestMs = outcomes.at(-1)?.atMs;
    if (newestMs === undefined) return;
    const beforeS = dated.notAfter(Math.floor(newestMs / 1_000)) - eventRetentionS;
    for (const [id, own] of Map.groupBy(outcomes, (outcome) => outcome.id))
      deliveries.sweep(id, beforeS, sweptPerOutcome * own.length);
    swept = next(swept) ?? next(0) ?? 0;
    deliveries.sweep(swept, beforeS, sweptElsewhere);
  }

  return {
    ListSending: reads(({ page }) => {
      const found = rows
        .select()
        .where(
          and(eq(webhook.status, 'ENABLED'), eq(caller.status, 'ACTIVE'), gt(webhook.id, page.from ?? 0)),
        )
        .orderBy(asc(webhook.id))
        .limit(rowsFor(page))
        .all();
      return pageOf(found, page, (row) =>
        toSending(row, deliveries.pending(row.id, 1)[0]?.nextAttemptAtMs ?? null),
      );
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

/** Prepares the statements on endpoints. */
function createEndpoints(database: Database) {
  const isNamed = eq(webhook.id, sql.placeholder('id'));
  const selectNext = prepareRaw<{ id: number }>(
    database,
    database
      .select({ id: webhook.id })
      .from(webhook)
      .where(gt(webhook.id, sql.placeholder('id')))
      .limit(1),
  );
  return {
    moveCursor: prepareRaw(
      database,
      database
        .update(webhook)
        .set({ cursor: sql`${sql.placeholder('cursor')}` })
        .where(isNamed),
    ),
    setFailing: prepareRaw(
      database,
      database
        .update(webhook)
        .set({ failingSinceS: sql`${sql.placeholder('failingSinceS')}` })
        .where(isNamed),
    ),
    /** The id of the next endpoint. */
    next: (id: number) => selectNext.get({ id })?.id,
  };
}

/** A PENDING delivery. */
interface DueRow {
  readonly sequence: number;
  readonly resource: string;
  readonly attempts: number;
  readonly nextAttemptAtMs: number;
}

/** Prepares the statements on deliveries. */
function createDeliveries(database: Database) {
  const isOf = eq(webhookDelivery.webhook, sql.placeholder('id'));
  const isNamed = and(isOf, eq(webhookDelivery.sequence, sql.placeholder('sequence')));
  const selectPending = prepareRaw<DueRow>(
    database,
    database
      .select({
        sequence: webhookDelivery.sequence,
        resource: webhookDelivery.resource,
        attempts: webhookDelivery.attempts,
        nextAttemptAtMs: sql<number>`${webhookDelivery.nextAttemptAtMs}`.as('nextAttemptAtMs'),
      })
      .from(webhookDelivery)
      .where(and(isOf, isPending))
      .orderBy(asc(webhookDelivery.nextAttemptAtMs))
      .limit(sql.placeholder('limit')),
  );
  const selectFirstOpen = prepareRaw<{ sequence: number; status: string }>(
    database,
    database
      .select({ sequence: webhookDelivery.sequence, status: webhookDelivery.status })
      .from(webhookDelivery)
      .where(and(isOf, isOpen, eq(webhookDelivery.resource, sql.placeholder('resource'))))
      .orderBy(asc(webhookDelivery.sequence))
      .limit(1),
  );
  const insert = prepareRaw(
    database,
    database.insert(webhookDelivery).values(placeholdersFor(webhookDelivery)),
  );
  const setDue = prepareRaw(
    database,
    database
      .update(webhookDelivery)
      .set({ status: sql`${sql.placeholder('status')}`, nextAttemptAtMs: sql`${sql.placeholder('dueAtMs')}` })
      .where(isNamed),
  );
  const setFailed = prepareRaw(
    database,
    database
      .update(webhookDelivery)
      .set({ status: 'FAILED', nextAttemptAtMs: null, error: sql`${sql.placeholder('error')}` })
      .where(isNamed),
  );
  const setBack = prepareRaw(
    database,
    database
      .update(webhookDelivery)
      .set({ nextAttemptAtMs: sql`${sql.placeholder('nowMs')}` })
      .where(and(isOf, isPending, gt(webhookDelivery.nextAttemptAtMs, sql.placeholder('horizonMs')))),
  );
  const setOutcome = prepareRaw<{ resource: string }>(
    database,
    database
      .update(webhookDelivery)
      .set({
        // A delivery that has ended stays so: later events of its resource may have been sent.
        status: sql`iif(${sql.placeholder('status')} = 'PENDING' AND NOT ${isOpen}, ${webhookDelivery.status}, ${sql.placeholder('status')})`,
        attempts: sql`${sql.placeholder('attempts')}`,
        lastAttemptAtMs: sql`${sql.placeholder('atMs')}`,
        nextAttemptAtMs: sql`iif(${isOpen}, ${sql.placeholder('dueAtMs')}, NULL)`,
        httpStatus: sql`${sql.placeholder('httpStatus')}`,
        response: sql`${sql.placeholder('answer')}`,
        error: sql`${sql.placeholder('error')}`,
      })
      .where(isNamed)
      .returning({ resource: webhookDelivery.resource }),
  );
  const oldest = database
    .select({ sequence: webhookDelivery.sequence })
    .from(webhookDelivery)
    .where(isOf)
    .orderBy(asc(webhookDelivery.sequence))
    .limit(sql.placeholder('limit'));
  const deleteOld = prepareRaw(
    database,
    database
      .delete(webhookDelivery)
      .where(
        and(
          isOf,
          sql`${webhookDelivery.sequence} IN ${oldest}`,
          lt(webhookDelivery.eventAtS, sql.placeholder('beforeS')),
          isOver,
        ),
      ),
  );

  return {
    /** PENDING deliveries of an endpoint, oldest due time first. */
    pending: (id: number, limit: number): readonly DueRow[] => selectPending.all({ id, limit }),
    /** The first open delivery of a resource. */
    firstOpen: (id: number, resource: string) => selectFirstOpen.get({ id, resource }),
    /** Adds the delivery of an event: PENDING, or WAITING if `dueAtMs` is null. */
    add: (id: number, event: Event, dueAtMs: number | null) =>
      insert.run({
        ...{ webhook: id, sequence: event.sequence, type: event.type, resource: resourceOf(event) },
        eventAtS: Math.floor(event.atMs / 1_000),
        ...{ status: dueAtMs === null ? 'WAITING' : 'PENDING', nextAttemptAtMs: dueAtMs },
        ...{ attempts: 0, lastAttemptAtMs: null, httpStatus: null, response: null, error: null },
      }),
    makeDue: (id: number, sequence: number, dueAtMs: number) =>
      setDue.run({ id, sequence, status: 'PENDING', dueAtMs }),
    makeWait: (id: number, sequence: number) =>
      setDue.run({ id, sequence, status: 'WAITING', dueAtMs: null }),
    giveUp: (id: number, sequence: number, error: string) => setFailed.run({ id, sequence, error }),
    /** Makes due what is scheduled later than any retry, which a clock that was set back leaves. */
    capDueTimes: (id: number, nowMs: number) => setBack.run({ id, nowMs, horizonMs: nowMs + dueHorizonMs }),
    /** Records an attempt. Returns the resource of its event; undefined if the delivery is gone. Without a retry, it ends. */
    record: (outcome: DeliveryResult, isEnabled: boolean): string | undefined => {
      const { id, sequence, attempts, atMs, isDelivered, httpStatus, answer, error, retryAtMs } = outcome;
      const isTriedAgain = retryAtMs !== null && isEnabled;
      const status = isDelivered ? 'DELIVERED' : isTriedAgain ? 'PENDING' : 'FAILED';
      return setOutcome.get({
        ...{ id, sequence, status, attempts, atMs, httpStatus, error },
        answer: answer && Buffer.from(answer),
        dueAtMs: isTriedAgain ? retryAtMs : null,
      })?.resource;
    },
    /** Deletes those of an endpoint's first `limit` deliveries that have ended and whose event is from before a time. */
    sweep: (id: number, beforeS: number, limit: number) => deleteOld.run({ id, beforeS, limit }),
  };
}
