import { and, asc, between, count, desc, eq, gt, isNotNull, lte, max, ne, type SQL, sql } from 'drizzle-orm';
import {
  type CapUse,
  holdEndsS,
  keyEndsS,
  type MetricCommands,
  type OpenInstructions,
  type OpenOrders,
  openInstructionsMax,
  orderAgesS,
  type RegistryMetrics,
} from '../metric-commands.ts';
import type { EventReads } from './events.ts';
import { numbersOf } from './filings.ts';
import { type Handlers, reads } from './handlers.ts';
import { everybody, headReader } from './outbox.ts';
import { numberFloors } from './restorations.ts';
import { apiKey, caller, escrow, escrowInstruction, filing, latestFiling, numberSequence } from './schema.ts';
import { type Database, prepareMapped, prepareRaw } from './statement.ts';
import { createWebhookMetrics } from './webhook-metrics.ts';

const openStates = ['UNPAID', 'FROZEN'] as const satisfies readonly OpenOrders['state'][];
const finalStates = ['RELEASED', 'REFUNDED', 'CLOSED'] as const;
type FinalState = (typeof finalStates)[number];

/** The handler of metrics. */
export function createMetricHandlers(database: Database, events: EventReads): Handlers<keyof MetricCommands> {
  const orders = createOrderCounts(database);
  const numbers = createNumberMetrics(database);
  const inReview = prepareCount(database, escrow, isNotNull(escrow.review));
  // A literal, so that SQLite can use the partial index.
  const isHeld = sql`${escrow.state} = 'FROZEN'`;
  const endsSoon = lte(escrow.holdExpiresAtS, sql.placeholder('untilS'));
  const holdsEnding = prepareCount(database, escrow, and(isHeld, endsSoon));
  const nextLookUp = prepareRaw<{ look_up_at_ms: number }>(
    database,
    database
      .select({ lookUpAtMs: escrow.lookUpAtMs })
      .from(escrow)
      .where(isNotNull(escrow.lookUpAtMs))
      .orderBy(asc(escrow.lookUpAtMs))
      .limit(1),
  );
  const keysEnding = prepareCount(
    database,
    apiKey,
    and(
      ne(apiKey.status, 'REVOKED'),
      gt(apiKey.expiresAtS, sql.placeholder('nowS')),
      lte(apiKey.expiresAtS, sql.placeholder('untilS')),
    ),
  );
  const openInstructions = prepareOpenInstructions(database);
  const webhooks = createWebhookMetrics(database, events);
  const headOf = headReader(database);

  return {
    ReadMetrics: reads(({ nowMs, year }) => {
      const nowS = Math.floor(nowMs / 1_000);
      return {
        ...numbers.used(year),
        nearestCap: numbers.caps(year, 1)[0],
        ...orders(nowMs),
        ordersInReview: inReview({}),
        holdsEnding: holdsEnding({ untilS: nowS + holdEndsS }),
        openInstructions: openInstructions(),
        nextLookUpAtMs: nextLookUp.get({})?.look_up_at_ms,
        keysEnding: keyEndsS.map((s) => keysEnding({ nowS, untilS: nowS + s })),
        newestEvent: headOf(everybody).position,
        webhooks: webhooks(),
      };
    }),
  };
}

/** Prepares the count of the rows that match. */
function prepareCount(database: Database, table: typeof escrow | typeof apiKey, which: SQL | undefined) {
  const select = database.select({ rows: count().as('rows') });
  const counted = prepareRaw<{ rows: number }>(database, select.from(table).where(which));
  return (values: Parameters<typeof counted.get>[0]) => counted.get(values)?.rows ?? 0;
}

/** Reads the used numbers of a year, in total and by the platforms that have a cap. */
export function createNumberMetrics(database: Database) {
  const lastFiling = prepareRaw<{ last: string | null }>(
    database,
    database
      .select({ last: max(filing.filingNo).as('last') })
      .from(filing)
      .where(between(filing.filingNo, sql.placeholder('from'), sql.placeholder('to'))),
  );
  const lastEscrow = prepareRaw<{ last: number }>(
    database,
    database
      .select({ last: numberSequence.last })
      .from(numberSequence)
      .where(and(eq(numberSequence.kind, 'ESCROW'), eq(numberSequence.year, sql.placeholder('year')))),
  );
  const floors = numberFloors(database, 'FILING');
  const share = sql<number>`1.0 * coalesce(${latestFiling.filings}, 0) / ${caller.filingCap}`;
  const capUses = prepareRaw<CapUse>(
    database,
    database
      .select({
        platform: sql<string>`${caller.name}`.as('platform'),
        filings: sql<number>`coalesce(${latestFiling.filings}, 0)`.as('filings'),
        cap: sql<number>`${caller.filingCap}`.as('cap'),
      })
      .from(caller)
      .leftJoin(
        latestFiling,
        and(eq(latestFiling.callerId, caller.id), eq(latestFiling.year, sql.placeholder('year'))),
      )
      .where(isNotNull(caller.filingCap))
      .orderBy(desc(share))
      .limit(sql.placeholder('limit')),
  );
  return {
    used: (year: number) => ({
      filingNumbers: Math.max(
        Number(lastFiling.get(numbersOf(year))?.last?.slice(-6) ?? 0),
        floors.get(year) ?? 0,
      ),
      escrowNumbers: lastEscrow.get({ year })?.last ?? 0,
    }),
    /** The platforms that have used the greatest share of their cap on filings, `limit` at most. */
    caps: (year: number, limit: number) => capUses.all({ year, limit }),
  };
}

function prepareOpenInstructions(database: Database): () => OpenInstructions[] {
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
        failedAttempts: sql<number>`sum(${escrow.failedAttempts})`,
        oldestAtMs: sql<number>`min(${some.preparedAtMs})`,
      })
      .from(some)
      .innerJoin(escrow, eq(escrow.id, some.orderId))
      .groupBy(some.kind, some.status),
  );
  return () => statement.all();
}

/**
 * Counts orders by state. No order leaves a final state, so the orders before the oldest open one are counted once. Ids are in the
 * order of opening, so an age is an id, and each count is a range of the index of states.
 */
function createOrderCounts(
  database: Database,
): (nowMs: number) => Pick<RegistryMetrics, 'settledOrders' | 'openOrders'> {
  const lastId = database.$client.prepare<[], number>('SELECT coalesce(max(id), 0) FROM escrow').pluck();
  const firstOf = prepareRaw<{ id: number }>(
    database,
    database
      .select({ id: escrow.id })
      .from(escrow)
      .where(eq(escrow.state, sql.placeholder('state')))
      .orderBy(asc(escrow.id))
      .limit(1),
  );
  const countOf = prepareCount(
    database,
    escrow,
    and(
      eq(escrow.state, sql.placeholder('state')),
      gt(escrow.id, sql.placeholder('after')),
      lte(escrow.id, sql.placeholder('through')),
    ),
  );
  const openedUpTo = prepareRaw<{ order_id: number; prepared_at_ms: number }>(
    database,
    database
      .select({ orderId: escrowInstruction.orderId, preparedAtMs: escrowInstruction.preparedAtMs })
      .from(escrowInstruction)
      .where(
        and(sql`${escrowInstruction.kind} = 'FREEZE'`, lte(escrowInstruction.orderId, sql.placeholder('id'))),
      )
      .orderBy(desc(escrowInstruction.orderId))
      .limit(1),
  );
  const rowsOf = (state: string, after: number, through: number) =>
    after < through ? countOf({ state, after, through }) : 0;

  /** The counts of the orders through this id, none of which is open. */
  let settled = { through: 0, counts: emptyCounts() };

  /** Counts the orders in final states. `firstOpen` is the oldest open order. */
  function settledOrders(firstOpen: number, last: number): Record<FinalState, number> {
    // Counted orders may have been rolled back with their batch.
    if (settled.through >= firstOpen) settled = { through: 0, counts: emptyCounts() };
    const through = firstOpen - 1;
    for (const state of finalStates) settled.counts[state] += rowsOf(state, settled.through, through);
    settled.through = through;
    const counts = { ...settled.counts };
    for (const state of finalStates) counts[state] += rowsOf(state, through, last);
    return counts;
  }

  /** The id of the last order through `high` that was opened by `atMs`, or one before `low` if none was. */
  function lastOpenedBy(atMs: number, low: number, high: number): number {
    let [from, to] = [low, high];
    while (from <= to) {
      const found = openedUpTo.get({ id: Math.floor((from + to) / 2) });
      if (found === undefined || found.order_id < from) from = Math.floor((from + to) / 2) + 1;
      else if (found.prepared_at_ms <= atMs) from = Math.floor((from + to) / 2) + 1;
      else to = found.order_id - 1;
    }
    return to;
  }

  return (nowMs) => {
    const last = lastId.get() ?? 0;
    const firsts = openStates.flatMap((state) => firstOf.get({ state })?.id ?? []);
    const firstOpen = Math.min(last + 1, ...firsts);
    // From the newest to the oldest.
    const edges = [last];
    // Each within the previous one, although the clock may have been set.
    for (const ageS of orderAgesS)
      edges.push(lastOpenedBy(nowMs - ageS * 1_000, firstOpen, edges.at(-1) ?? last));
    edges.push(firstOpen - 1);
    return {
      settledOrders: settledOrders(firstOpen, last),
      openOrders: openStates.map((state) => ({
        state,
        counts: edges.slice(1).map((after, index) => rowsOf(state, after, edges[index] ?? 0)),
      })),
    };
  };
}

const emptyCounts = (): Record<FinalState, number> => ({ RELEASED: 0, REFUNDED: 0, CLOSED: 0 });
