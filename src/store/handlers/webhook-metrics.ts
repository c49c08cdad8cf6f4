import { and, count, eq, min, sql } from 'drizzle-orm';
import { webhook, webhookDelivery } from '../engine/schema.ts';
import { type Database, named, prepare } from '../engine/statement.ts';
import { laggingWebhooksMax, openDeliveriesMax, type WebhookMetrics } from '../metric-commands.ts';
import type { Parts } from './parts.ts';
import { isOpen } from './webhooks.ts';

/** Whether an endpoint is enabled, and its last attempt did not fail. */
export const isHealthy = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NULL`;

/** Prepares the metrics of webhooks. */
export function createWebhookMetrics(
  database: Database,
  events: Parts['events'],
): () => Promise<WebhookMetrics> {
  const isFailing = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NOT NULL`;
  const open = database
    .select({ status: webhookDelivery.status })
    .from(webhookDelivery)
    .where(isOpen)
    .limit(openDeliveriesMax)
    .as('open');
  const { countEndpoints, firstDue, countOpen } = prepare(database, {
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
    countOpen: database
      .select(named({ status: open.status, rows: count() }))
      .from(open)
      .groupBy(open.status),
  });

  /** The times of the first events after the cursors of healthy endpoints. */
  async function firstWaitingAtMs(): Promise<number[]> {
    const times: number[] = [];
    for (const { callerId, cursor } of await events.behind(laggingWebhooksMax)) {
      const { events: found } = await events.after(callerId, cursor, 1);
      times.push(...found.map(({ atMs }) => atMs));
    }
    return times;
  }

  return async () => {
    const counts = await countEndpoints.get();
    const dueAtMs = (await firstDue.get())?.dueAtMs ?? [];
    const waitsSinceMs = [dueAtMs, ...(await firstWaitingAtMs())].flat();
    const byStatus = new Map((await countOpen.all()).map(({ status, rows }) => [status, rows]));
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
