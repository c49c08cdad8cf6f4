import { and, asc, count, desc, eq, gt, isNotNull, lte, min, ne, sql } from 'drizzle-orm';
import {
  holdEndsS,
  keyEndsS,
  type MetricCommands,
  type OpenInstructions,
  type OpenOrders,
  openInstructionsMax,
  orderAgesS,
  type RegistryMetrics,
} from '../metric-commands.ts';
import { lastNumber, numbersOf } from './filings.ts';
import { type Handlers, reads } from './handlers.ts';
import { everybody, headReader } from './outbox.ts';
import type { Parts } from './parts.ts';
import { numberFloors } from './restorations.ts';
import { apiKey, caller, escrow, escrowInstruction, latestFiling, numberSequence } from './schema.ts';
import { type Database, named, prepare, prepareMapped } from './statement.ts';
import { createWebhookMetrics } from './webhook-metrics.ts';

const openStates = ['UNPAID', 'FROZEN'] as const satisfies readonly OpenOrders['state'][];
const finalStates = ['RELEASED', 'REFUNDED', 'CLOSED'] as const;
type FinalState = (typeof finalStates)[number];

/** The handler of metrics. */
export function createMetricHandlers({ database, events }: Parts): Handlers<keyof MetricCommands> {
  const orders = createOrderCounts(database);
  const numbers = createNumberMetrics(database);
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
  const headOf = headReader(database);

  return {
    ReadMetrics: reads(({ nowMs, year }) => {
      const nowS = Math.floor(nowMs / 1_000);
      return {
        ...numbers.used(year),
        nearestCap: numbers.caps(year, 1)[0],
        ...orders(nowMs),
        ordersInReview: inReview.get()?.rows ?? 0,
        holdsEnding: holdsEnding.get({ untilS: nowS + holdEndsS })?.rows ?? 0,
        openInstructions: openInstructions(),
        nextLookUpAtMs: nextLookUp.get()?.atMs ?? undefined,
        keysEnding: keyEndsS.map((s) => keysEnding.get({ nowS, untilS: nowS + s })?.rows ?? 0),
        newestEvent: headOf(everybody).position,
        webhooks: webhooks(),
      };
    }),
  };
}

/** Reads the used numbers of a year, in total and by the platforms that have a cap. */
export function createNumberMetrics(database: Database) {
  const share = sql<number>`1.0 * coalesce(${latestFiling.filings}, 0) / ${caller.filingCap}`;
  const { lastFiling, lastEscrow, capUses } = prepare(database, {
    lastFiling: lastNumber(database),
    lastEscrow: database
      .select({ last: numberSequence.last })
      .from(numberSequence)
      .where(and(eq(numberSequence.kind, 'ESCROW'), eq(numberSequence.year, sql.placeholder('year')))),
    capUses: database
      .select(
        named({
          platform: caller.name,
          filings: sql<number>`coalesce(${latestFiling.filings}, 0)`,
          cap: sql<number>`${caller.filingCap}`,
        }),
      )
      .from(caller)
      .leftJoin(
        latestFiling,
        and(eq(latestFiling.callerId, caller.id), eq(latestFiling.year, sql.placeholder('year'))),
      )
      .where(isNotNull(caller.filingCap))
      .orderBy(desc(share))
      .limit(sql.placeholder('limit')),
  });
  const floors = numberFloors(database, 'FILING');
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
  const { firstOf, countOf, openedUpTo } = prepare(database, {
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
  const rowsOf = (state: string, after: number, through: number) =>
    after < through ? (countOf.get({ state, after, through })?.rows ?? 0) : 0;

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
      if (found === undefined || found.orderId < from) from = Math.floor((from + to) / 2) + 1;
      else if (found.preparedAtMs <= atMs) from = Math.floor((from + to) / 2) + 1;
      else to = found.orderId - 1;
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
