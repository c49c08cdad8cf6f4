import { and, asc, eq, gt, lt, sql } from 'drizzle-orm';
import { type Event, resourceOf } from '../../domain/event.ts';
import { type DeliveryStatus, dueHorizonMs } from '../../domain/webhook.ts';
import type { DeliveryResult } from '../webhook-commands.ts';
import { webhookDelivery } from './schema.ts';
import { type Database, placeholdersFor, prepareRaw } from './statement.ts';
import { isOpen } from './webhooks.ts';

/** Literals, so that SQLite can use the partial index. */
const isPending = sql`${webhookDelivery.status} = 'PENDING'`;
const isOver = sql`${webhookDelivery.status} IN ('DELIVERED', 'FAILED')`;

const isOf = eq(webhookDelivery.webhook, sql.placeholder('id'));
const isNamed = and(isOf, eq(webhookDelivery.sequence, sql.placeholder('sequence')));

/** The members of a delivery without an attempt. */
const untried = { attempts: 0, lastAttemptAtMs: null, httpStatus: null, response: null, error: null };

/** A PENDING delivery. */
export interface DueRow {
  readonly sequence: number;
  readonly resource: string;
  readonly attempts: number;
  readonly nextAttemptAtMs: number;
}

/** The rows of deliveries. Methods that write run inside an effect. */
export type DeliveryRows = ReturnType<typeof createDeliveryRows>;

/** The rows of a database. */
export function createDeliveryRows(database: Database) {
  const { selectPending, selectFirstOpen, selectStatus } = prepareQueries(database);
  const { put, setDue, setFailed, setBack, setOutcome, deleteOld } = prepareChanges(database);

  /** The first open delivery of a resource. */
  const firstOpen = (id: number, resource: string) => selectFirstOpen.get({ id, resource });

  return {
    /** PENDING deliveries of an endpoint, oldest due time first. */
    pending: (id: number, limit: number): readonly DueRow[] => selectPending.all({ id, limit }),
    firstOpen,
    /** Makes the next WAITING delivery of a resource due. Returns whether there was one. */
    release: (id: number, resource: string, nowMs: number): boolean => {
      const first = firstOpen(id, resource);
      if (first?.status !== 'WAITING') return false;
      setDue.run({ id, sequence: first.sequence, status: 'PENDING', dueAtMs: nowMs });
      return true;
    },
    /** The status of a delivery; undefined if there is none. */
    statusOf: (id: number, sequence: number) => selectStatus.get({ id, sequence })?.status,
    /**
     * Adds the delivery of an event, or resets it: PENDING, or WAITING if `dueAtMs` is null. Returns false if it is so already and
     * due no later.
     */
    put: (id: number, event: Event, dueAtMs: number | null): boolean =>
      put.run({
        ...{ webhook: id, sequence: event.sequence, type: event.type, resource: resourceOf(event) },
        eventAtS: Math.floor(event.atMs / 1_000),
        ...{ status: dueAtMs === null ? 'WAITING' : 'PENDING', nextAttemptAtMs: dueAtMs },
        ...untried,
      }) > 0,
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

function prepareQueries(database: Database) {
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
  const selectStatus = prepareRaw<{ status: DeliveryStatus }>(
    database,
    database.select({ status: webhookDelivery.status }).from(webhookDelivery).where(isNamed),
  );
  return { selectPending, selectFirstOpen, selectStatus };
}

function prepareChanges(database: Database) {
  const put = prepareRaw(
    database,
    database
      .insert(webhookDelivery)
      .values(placeholdersFor(webhookDelivery))
      .onConflictDoUpdate({
        target: [webhookDelivery.webhook, webhookDelivery.sequence],
        set: {
          status: sql`excluded.status`,
          nextAttemptAtMs: sql`excluded.next_attempt_at_ms`,
          ...untried,
        },
        setWhere: sql`${webhookDelivery.status} <> excluded.status OR ${webhookDelivery.attempts} > 0
          OR ${webhookDelivery.nextAttemptAtMs} > excluded.next_attempt_at_ms`,
      }),
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
  return { put, setDue, setFailed, setBack, setOutcome, deleteOld };
}
