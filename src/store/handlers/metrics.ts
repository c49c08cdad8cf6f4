import { and, asc, count, desc, eq, gt, isNotNull, lte, max, min, ne, sql } from 'drizzle-orm';
import { type Handlers, reads } from '../engine/handlers.ts';
import { apiKey, escrow, escrowInstruction, webhook, webhookDelivery } from '../engine/schema.ts';
import { type Database, named, prepare, prepareMapped } from '../engine/statement.ts';
import {
  holdEndsS,
  keyEndsS,
  laggingWebhooksMax,
  type MetricCommands,
  type OpenInstructions,
  type OpenOrders,
  openDeliveriesMax,
  openInstructionsMax,
  orderAgesS,
  type RegistryMetrics,
  type WebhookMetrics,
} from '../metric-commands.ts';
import { createUsedNumbers } from './filing-numbers.ts';
import type { Parts } from './parts.ts';
import { isHealthy, isOpen } from './webhooks.ts';

const openStates = ['UNPAID', 'FROZEN'] as const satisfies readonly OpenOrders['state'][];
const finalStates = ['RELEASED', 'REFUNDED', 'CLOSED'] as const;
type FinalState = (typeof finalStates)[number];

/** The handler of metrics. */
export function createMetricHandlers({
  database,
  events,
  filings,
  clock,
}: Parts): Handlers<keyof MetricCommands> {
  const orders = createOrderCounts(database);
  const usedNumbers = createUsedNumbers(database);
  const { inReview, holdsEnding, nextLookUp, keysEnding } = prepare(database, {
    inReview: database
      .select(named({ rows: count() }))
      .from(escrow)
      .where(isNotNull(escrow.review)),
    holdsEnding: database
      .select(named({ rows: count() }))
      .from(escrow)
      // A literal, so that SQLite can use the partial index.
      .where(and(sql`${escrow.state} = 'FROZEN'`, lte(escrow.holdExpiresAtS, sql.placeholder('untilS')))),
    nextLookUp: database
      .select(named({ atMs: min(escrow.lookUpAtMs) }))
      .from(escrow)
      .where(isNotNull(escrow.lookUpAtMs)),
    keysEnding: database
      .select(named({ rows: count() }))
      .from(apiKey)
      .where(
        and(
          ne(apiKey.status, 'REVOKED'),
          gt(apiKey.expiresAtS, sql.placeholder('nowS')),
          lte(apiKey.expiresAtS, sql.placeholder('untilS')),
        ),
      ),
  });
  const openInstructions = prepareOpenInstructions(database);
  const webhooks = createWebhookMetrics(database, events);

  /** The counts of keys that end within each of `keyEndsS`. */
  async function countKeysEnding(nowS: number): Promise<number[]> {
    const counts: number[] = [];
    for (const s of keyEndsS) counts.push((await keysEnding.get({ nowS, untilS: nowS + s }))?.rows ?? 0);
    return counts;
  }

  return {
    ReadMetrics: reads(async ({ nowMs, year }) => {
      const nowS = Math.floor(nowMs / 1_000);
      // Orders have the time of the business clock, and keys the real one.
      const aheadS = await clock.aheadS();
      return {
        ...(await usedNumbers(year)),
        nearestCap: (await filings.caps(year, 1))[0],
        ...(await orders(nowMs + aheadS * 1_000)),
        ordersInReview: (await inReview.get())?.rows ?? 0,
        holdsEnding: (await holdsEnding.get({ untilS: nowS + aheadS + holdEndsS }))?.rows ?? 0,
        openInstructions: await openInstructions(),
        nextLookUpAtMs: (await nextLookUp.get())?.atMs ?? undefined,
        keysEnding: await countKeysEnding(nowS),
        newestEvent: await events.newestPosition(),
        webhooks: await webhooks(),
      };
    }),
  };
}

function prepareOpenInstructions(database: Database): () => Promise<OpenInstructions[]> {
  // Literals, so that SQLite can use the partial index.
  const some = database
    .select({
      orderId: escrowInstruction.orderId,
      kind: escrowInstruction.kind,
      status: escrowInstruction.status,
      preparedAtMs: escrowInstruction.preparedAtMs,
    })
    .from(escrowInstruction)
    .where(sql`${escrowInstruction.status} IN ('PREPARED', 'SENT', 'UNKNOWN')`)
    .orderBy(asc(escrowInstruction.orderId))
    .limit(openInstructionsMax)
    .as('some');
  const statement = prepareMapped(
    database
      .select({
        kind: some.kind,
        status: sql<OpenInstructions['status']>`${some.status}`,
        count: count(),
        failedAttempts: sql<number>`sum(${escrow.failedAttempts})`.mapWith(Number),
        oldestAtMs: sql<number>`min(${some.preparedAtMs})`,
      })
      .from(some)
      .innerJoin(escrow, eq(escrow.id, some.orderId))
      .groupBy(some.kind, some.status)
      .orderBy(some.kind, some.status),
  );
  return async () => statement.all();
}

/**
 * Counts orders by state. No order leaves a final state, so the orders before the oldest open one are counted once. Ids are in the
 * order of opening, so an age is an id, and each count is a range of the index of states.
 */
function createOrderCounts(
  database: Database,
): (nowMs: number) => Promise<Pick<RegistryMetrics, 'settledOrders' | 'openOrders'>> {
  const { lastId, firstOf, countOf, openedUpTo } = prepareOrderQueries(database);
  const rowsOf = async (state: string, after: number, through: number): Promise<number> =>
    after < through ? ((await countOf.get({ state, after, through }))?.rows ?? 0) : 0;

  /** The counts of the orders through this id, none of which is open. */
  let settled = { through: 0, counts: emptyCounts() };

  /** Counts the orders in final states. `firstOpen` is the oldest open order. */
  async function settledOrders(firstOpen: number, last: number): Promise<Record<FinalState, number>> {
    const through = firstOpen - 1;
    // Counted orders may have been rolled back with their batch.
    const known = settled.through <= through ? settled : { through: 0, counts: emptyCounts() };
    // A query that fails leaves the known counts as they are.
    const counts = await counted(known.counts, known.through, through);
    settled = { through, counts };
    return counted(counts, through, last);
  }

  /** Adds the orders of a range in final states to counts. */
  async function counted(
    counts: Readonly<Record<FinalState, number>>,
    after: number,
    through: number,
  ): Promise<Record<FinalState, number>> {
    const sums = { ...counts };
    for (const state of finalStates) sums[state] = counts[state] + (await rowsOf(state, after, through));
    return sums;
  }

  /** The id of the last order through `high` that was opened by `atMs`, or one before `low` if none was. */
  async function lastOpenedBy(atMs: number, low: number, high: number): Promise<number> {
    let [from, to] = [low, high];
    while (from <= to) {
      const found = await openedUpTo.get({ id: Math.floor((from + to) / 2) });
      if (found === undefined || found.orderId < from) from = Math.floor((from + to) / 2) + 1;
      else if (found.preparedAtMs <= atMs) from = Math.floor((from + to) / 2) + 1;
      else to = found.orderId - 1;
    }
    return to;
  }

  /** The counts of open orders between these ids, from the newest to the oldest. */
  async function openOrders(edges: readonly number[]): Promise<OpenOrders[]> {
    const open: OpenOrders[] = [];
    for (const state of openStates) {
      const counts: number[] = [];
      for (const [index, after] of edges.slice(1).entries())
        counts.push(await rowsOf(state, after, edges[index] ?? 0));
      open.push({ state, counts });
    }
    return open;
  }

  return async (nowMs) => {
    const last = (await lastId.get())?.id ?? 0;
    let firstOpen = last + 1;
    for (const state of openStates)
      firstOpen = Math.min(firstOpen, (await firstOf.get({ state }))?.id ?? firstOpen);
    // From the newest to the oldest.
    const edges = [last];
    // Each within the previous one, although the clock may have been set.
    for (const ageS of orderAgesS)
      edges.push(await lastOpenedBy(nowMs - ageS * 1_000, firstOpen, edges.at(-1) ?? last));
    edges.push(firstOpen - 1);
    return {
      settledOrders: await settledOrders(firstOpen, last),
      openOrders: await openOrders(edges),
    };
  };
}

function prepareOrderQueries(database: Database) {
  return prepare(database, {
    lastId: database.select(named({ id: max(escrow.id) })).from(escrow),
    firstOf: database
      .select({ id: escrow.id })
      .from(escrow)
      .where(eq(escrow.state, sql.placeholder('state')))
      .orderBy(asc(escrow.id))
      .limit(1),
    countOf: database
      .select(named({ rows: count() }))
      .from(escrow)
      .where(
        and(
          eq(escrow.state, sql.placeholder('state')),
          gt(escrow.id, sql.placeholder('after')),
          lte(escrow.id, sql.placeholder('through')),
        ),
      ),
    openedUpTo: database
      .select(named({ orderId: escrowInstruction.orderId, preparedAtMs: escrowInstruction.preparedAtMs }))
      .from(escrowInstruction)
      .where(
        and(sql`${escrowInstruction.kind} = 'FREEZE'`, lte(escrowInstruction.orderId, sql.placeholder('id'))),
      )
      .orderBy(desc(escrowInstruction.orderId))
      .limit(1),
  });
}

const emptyCounts = (): Record<FinalState, number> => ({ RELEASED: 0, REFUNDED: 0, CLOSED: 0 });

/** Prepares the metrics of webhooks. */
function createWebhookMetrics(database: Database, events: Parts['events']): () => Promise<WebhookMetrics> {
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
    for (const { callerId, cursor } of await events.lagging(laggingWebhooksMax)) {
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
