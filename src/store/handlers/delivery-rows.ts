import { and, asc, eq, gt, lt, or, sql } from 'drizzle-orm';
import { type Event, resourceOf } from '../../domain/event.ts';
import { dueHorizonMs } from '../../domain/webhook.ts';
import { webhookDelivery } from '../engine/schema.ts';
import { choose, type Database, named, placeholders, placeholdersFor, prepare } from '../engine/statement.ts';
import type { DeliveryResult } from '../webhook-commands.ts';
import { isOpen } from './webhooks.ts';

/** Literals, so that SQLite can use the partial index. */
const isPending = sql`${webhookDelivery.status} = 'PENDING'`;
const isOver = sql`${webhookDelivery.status} IN ('DELIVERED', 'FAILED')`;

const isOf = eq(webhookDelivery.webhook, sql.placeholder('id'));
const isNamed = and(isOf, eq(webhookDelivery.sequence, sql.placeholder('sequence')));

/** The members of a delivery without an attempt. */
const untried = { attempts: 0, lastAttemptAtMs: null, httpStatus: null, response: null, error: null };

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
    pending: (id: number, limit: number) => selectPending.all({ id, limit }),
    firstOpen,
    /** Makes the next WAITING delivery of a resource due. Returns whether there was one. */
    release: async (id: number, resource: string, nowMs: number): Promise<boolean> => {
      const first = await firstOpen(id, resource);
      if (first?.status !== 'WAITING') return false;
      await setDue.run({ id, sequence: first.sequence, status: 'PENDING', nextAttemptAtMs: nowMs });
      return true;
    },
    /** The status of a delivery; undefined if there is none. */
    statusOf: async (id: number, sequence: number) => (await selectStatus.get({ id, sequence }))?.status,
    /**
     * Adds the delivery of an event, or resets it: PENDING, or WAITING if `dueAtMs` is null. Returns false if it is so already and
     * due no later.
     */
    put: async (id: number, event: Event, dueAtMs: number | null): Promise<boolean> =>
      (await put.run({
        ...{ webhook: id, sequence: event.sequence, type: event.type, resource: resourceOf(event) },
        eventAtS: Math.floor(event.atMs / 1_000),
        ...{ status: dueAtMs === null ? 'WAITING' : 'PENDING', nextAttemptAtMs: dueAtMs },
        ...untried,
      })) > 0,
    makeWait: (id: number, sequence: number) =>
      setDue.run({ id, sequence, status: 'WAITING', nextAttemptAtMs: null }),
    giveUp: (id: number, sequence: number, error: string) => setFailed.run({ id, sequence, error }),
    /** Makes due what is scheduled later than any retry, which a clock that was set back leaves. */
    capDueTimes: (id: number, nowMs: number) =>
      setBack.run({ id, nextAttemptAtMs: nowMs, horizonMs: nowMs + dueHorizonMs }),
    /**
     * Records an attempt. Returns the resource of its event. Without a retry, the delivery ends. Returns undefined and changes nothing
     * if the delivery is gone, or if the attempt failed and a later one was recorded already.
     */
    record: async (outcome: DeliveryResult, isEnabled: boolean): Promise<string | undefined> => {
      const { id, sequence, attempts, atMs, isDelivered, httpStatus, answer, error, retryAtMs } = outcome;
      const isTriedAgain = retryAtMs !== null && isEnabled;
      const status = isDelivered ? 'DELIVERED' : isTriedAgain ? 'PENDING' : 'FAILED';
      const recorded = await setOutcome.get({
        ...{ id, sequence, status, attempts, lastAttemptAtMs: atMs, httpStatus, error },
        response: answer && Buffer.from(answer),
        nextAttemptAtMs: isTriedAgain ? retryAtMs : null,
      });
      return recorded?.resource;
    },
    /** Deletes those of an endpoint's first `limit` deliveries that have ended and whose event is from before a time. */
    sweep: (id: number, beforeS: number, limit: number) => deleteOld.run({ id, beforeS, limit }),
  };
}

function prepareQueries(database: Database) {
  const { sequence, resource, attempts, status } = webhookDelivery;
  const nextAttemptAtMs = sql<number>`${webhookDelivery.nextAttemptAtMs}`;
  return prepare(database, {
    selectPending: database
      .select(named({ sequence, resource, attempts, nextAttemptAtMs }))
      .from(webhookDelivery)
      .where(and(isOf, isPending))
      .orderBy(asc(webhookDelivery.nextAttemptAtMs), asc(sequence))
      .limit(sql.placeholder('limit')),
    selectFirstOpen: database
      .select({ sequence, status })
      .from(webhookDelivery)
      .where(and(isOf, isOpen, eq(resource, sql.placeholder('resource'))))
      .orderBy(asc(sequence))
      .limit(1),
    selectStatus: database.select({ status }).from(webhookDelivery).where(isNamed),
  });
}

function prepareChanges(database: Database) {
  const isLater = lt(webhookDelivery.attempts, sql.placeholder('attempts'));
  const oldest = database
    .select({ sequence: webhookDelivery.sequence })
    .from(webhookDelivery)
    .where(isOf)
    .orderBy(asc(webhookDelivery.sequence))
    .limit(sql.placeholder('limit'));
  return prepare(database, {
    put: database
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
    setDue: database.update(webhookDelivery).set(placeholders('status', 'nextAttemptAtMs')).where(isNamed),
    setFailed: database
      .update(webhookDelivery)
      .set({ status: 'FAILED', nextAttemptAtMs: null, ...placeholders('error') })
      .where(isNamed),
    setBack: database
      .update(webhookDelivery)
      .set(placeholders('nextAttemptAtMs'))
      .where(and(isOf, isPending, gt(webhookDelivery.nextAttemptAtMs, sql.placeholder('horizonMs')))),
    setOutcome: database
      .update(webhookDelivery)
      .set({
        ...placeholders('attempts', 'lastAttemptAtMs', 'httpStatus', 'response', 'error'),
        // A delivery that has ended stays so: later events of its resource may have been sent.
        status: choose(
          sql`${sql.placeholder('status')} = 'PENDING' AND NOT (${isOpen})`,
          webhookDelivery.status,
          sql.placeholder('status'),
        ),
        // It is null already unless the delivery is open.
        nextAttemptAtMs: choose(isOpen, sql.placeholder('nextAttemptAtMs'), webhookDelivery.nextAttemptAtMs),
      })
      .where(and(isNamed, or(sql`${sql.placeholder('status')} = 'DELIVERED'`, isLater)))
      .returning({ resource: webhookDelivery.resource }),
    deleteOld: database
      .delete(webhookDelivery)
      .where(
        and(
          isOf,
          sql`${webhookDelivery.sequence} IN ${oldest}`,
          lt(webhookDelivery.eventAtS, sql.placeholder('beforeS')),
          isOver,
        ),
      ),
  });
}
