import { and, count, eq, gt, min, sql } from 'drizzle-orm';
import { laggingWebhooksMax, openDeliveriesMax, type WebhookMetrics } from '../metric-commands.ts';
import type { EventReads } from './events.ts';
import { eventHead, webhook, webhookDelivery } from './schema.ts';
import { type Database, named, prepare } from './statement.ts';
import { isOpen } from './webhooks.ts';

/** Prepares the metrics of webhooks. */
export function createWebhookMetrics(database: Database, events: EventReads): () => WebhookMetrics {
  const isHealthy = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NULL`;
  const isFailing = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NOT NULL`;
  const open = database
    .select({ status: webhookDelivery.status })
    .from(webhookDelivery)
    .where(isOpen)
    .limit(openDeliveriesMax)
    .as('open');
  const { countEndpoints, firstDue, lagging, countOpen } = prepare(database, {
    countEndpoints: database
      .select(
        named({
          healthy: sql<number>`count(*) FILTER (WHERE ${isHealthy})`,
          failing: sql<number>`count(*) FILTER (WHERE ${isFailing})`,
          disabled: sql<number>`count(*) FILTER (WHERE ${webhook.status} = 'DISABLED')`,
          failingSinceS: sql<number | null>`min(${webhook.failingSinceS}) FILTER (WHERE ${isFailing})`,
        }),
      )
      .from(webhook),
    // Reads the index once for each endpoint, since the due deliveries of all endpoints are not a range of it.
    firstDue: database
      .select(
        named({
          dueAtMs: sql<number | null>`min((${database
            .select({ dueAtMs: min(webhookDelivery.nextAttemptAtMs) })
            .from(webhookDelivery)
            .where(
              and(eq(webhookDelivery.webhook, webhook.id), sql`${webhookDelivery.status} = 'PENDING'`),
            )}))`,
        }),
      )
      .from(webhook)
      .where(isHealthy),
    lagging: database
      .select(named({ callerId: webhook.callerId, cursor: webhook.cursor }))
      .from(webhook)
      .innerJoin(eventHead, eq(eventHead.callerId, webhook.callerId))
      .where(and(isHealthy, gt(eventHead.sequence, webhook.cursor)))
      .limit(laggingWebhooksMax),
    countOpen: database
      .select(named({ status: open.status, rows: count() }))
      .from(open)
      .groupBy(open.status),
  });

  /** The times of the first events after the cursors of healthy endpoints. */
  const firstWaitingAtMs = (): number[] =>
    lagging.all().flatMap(({ callerId, cursor }) => events.after(callerId, cursor, 1).events[0]?.atMs ?? []);

  return () => {
    const counts = countEndpoints.get();
    const waitsSinceMs = [firstDue.get()?.dueAtMs ?? [], ...firstWaitingAtMs()].flat();
    const byStatus = new Map(countOpen.all().map(({ status, rows }) => [status, rows]));
    return {
      healthy: counts?.healthy ?? 0,
      failing: counts?.failing ?? 0,
      disabled: counts?.disabled ?? 0,
      failingSinceS: counts?.failingSinceS ?? undefined,
      pending: byStatus.get('PENDING') ?? 0,
      waiting: byStatus.get('WAITING') ?? 0,
      waitsSinceMs: waitsSinceMs.length === 0 ? undefined : Math.min(...waitsSinceMs),
    };
  };
}
