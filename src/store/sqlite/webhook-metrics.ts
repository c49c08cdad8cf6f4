import { and, count, eq, gt, min, sql } from 'drizzle-orm';
import { laggingWebhooksMax, openDeliveriesMax, type WebhookMetrics } from '../metric-commands.ts';
import type { EventReads } from './events.ts';
import { eventHead, webhook, webhookDelivery } from './schema.ts';
import { type Database, prepareRaw } from './statement.ts';

interface EndpointCounts {
  readonly healthy: number;
  readonly failing: number;
  readonly disabled: number;
  readonly failing_since_s: number | null;
}

/** Prepares the metrics of webhooks. */
export function createWebhookMetrics(database: Database, events: EventReads): () => WebhookMetrics {
  const isHealthy = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NULL`;
  const isFailing = sql`${webhook.status} = 'ENABLED' AND ${webhook.failingSinceS} IS NOT NULL`;
  const countEndpoints = prepareRaw<EndpointCounts>(
    database,
    database
      .select({
        healthy: sql`count(*) FILTER (WHERE ${isHealthy})`.as('healthy'),
        failing: sql`count(*) FILTER (WHERE ${isFailing})`.as('failing'),
        disabled: sql`count(*) FILTER (WHERE ${webhook.status} = 'DISABLED')`.as('disabled'),
        failingSinceS: sql`min(${webhook.failingSinceS}) FILTER (WHERE ${isFailing})`.as('failing_since_s'),
      })
      .from(webhook),
  );
  const open = openCounts(database);
  // Reads the index once for each endpoint, since the due deliveries of all endpoints are not a range of it.
  const firstDue = prepareRaw<{ due_at_ms: number | null }>(
    database,
    database
      .select({
        dueAtMs: min(
          sql`(${database
            .select({ dueAtMs: min(webhookDelivery.nextAttemptAtMs) })
            .from(webhookDelivery)
            .where(
              and(eq(webhookDelivery.webhook, webhook.id), sql`${webhookDelivery.status} = 'PENDING'`),
            )})`,
        ).as('due_at_ms'),
      })
      .from(webhook)
      .where(isHealthy),
  );
  const lagging = prepareRaw<{ caller_id: number; cursor: number }>(
    database,
    database
      .select({ callerId: webhook.callerId, cursor: webhook.cursor })
      .from(webhook)
      .innerJoin(eventHead, eq(eventHead.callerId, webhook.callerId))
      .where(and(isHealthy, gt(eventHead.sequence, webhook.cursor)))
      .limit(laggingWebhooksMax),
  );

  /** The times of the first events after the cursors of healthy endpoints. */
  const firstWaitingAtMs = (): number[] =>
    lagging
      .all({})
      .flatMap(({ caller_id, cursor }) => events.after(caller_id, cursor, 1).events[0]?.atMs ?? []);

  return () => {
    const counts = countEndpoints.get({});
    const waitsSinceMs = [firstDue.get({})?.due_at_ms ?? [], ...firstWaitingAtMs()].flat();
    return {
      healthy: counts?.healthy ?? 0,
      failing: counts?.failing ?? 0,
      disabled: counts?.disabled ?? 0,
      failingSinceS: counts?.failing_since_s ?? undefined,
      ...open(),
      waitsSinceMs: waitsSinceMs.length === 0 ? undefined : Math.min(...waitsSinceMs),
    };
  };
}

/** Prepares the counts of open deliveries by status. */
function openCounts(database: Database): () => { readonly pending: number; readonly waiting: number } {
  const some = database
    .select({ status: webhookDelivery.status })
    .from(webhookDelivery)
    // A literal, so that SQLite can use the partial index.
    .where(sql`${webhookDelivery.status} IN ('PENDING', 'WAITING')`)
    .limit(openDeliveriesMax)
    .as('some');
  const counted = prepareRaw<{ status: string; rows: number }>(
    database,
    database
      .select({ status: some.status, rows: count().as('rows') })
      .from(some)
      .groupBy(some.status),
  );
  return () => {
    const rows = new Map(counted.all({}).map(({ status, rows }) => [status, rows]));
    return { pending: rows.get('PENDING') ?? 0, waiting: rows.get('WAITING') ?? 0 };
  };
}
