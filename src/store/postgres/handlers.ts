import type { InferSelectModel } from 'drizzle-orm';
import { retentionYears } from '../../domain/filing.ts';
import type { Incidents } from '../engine/failure.ts';
import { createFilingHandlers, type FilingTables } from '../engine/filings.ts';
import { type Handlers, reads, writesLast } from '../engine/handlers.ts';
import type { Erasure } from '../engine/parts.ts';
import { createRecordCheck } from '../engine/record-check.ts';
import type { deployment } from '../engine/schema.ts';
import { createTrustedClock } from '../engine/trusted-clock.ts';
import { createSharedHandlers } from '../handlers/all-handlers.ts';
import { createEventReads } from './events.ts';
import { createFilingReads, createFilingTables } from './filings.ts';
import type { Queries } from './leaf-rows.ts';
import { createPostgresLog } from './log.ts';
import { all, Needed, whenRead } from './needed.ts';
import { createOutbox } from './outbox.ts';
import { createRateHandler } from './rates.ts';
import { readClock } from './server-state.ts';
import { forHandlers } from './statement.ts';

/** As `createHandlers` makes it. */
export type PostgresHandlers = ReturnType<typeof createHandlers>;

/** Makes the handlers of all commands, and what they share with the transaction that they run in. */
export function createHandlers(
  queries: Queries,
  { secret, environment }: Pick<InferSelectModel<typeof deployment>, 'secret' | 'environment'>,
  incidents: Incidents,
  instances: Handlers<'JoinInstances' | 'ListInstances'>,
) {
  const log = createPostgresLog(queries, incidents, environment === 'sandbox');
  const times = createTimes(queries, () => all([...filings.flush(), ...log.flush()]));
  const clock = createTrustedClock(times, log.log);
  const outbox = createOutbox(queries, async (nowS) => whenRead(() => clock.notAfter(nowS)));
  const check = createRecordCheck({ ...log.log, leaves: log.leaves }, incidents);
  const filings = createFilingTables(queries);
  const filingReads = createFilingReads(queries);
  const insert: FilingTables['insert'] = (row) => {
    filings.tables.insert(row);
    times.filed();
  };
  const shared = createSharedHandlers({
    database: forHandlers(queries),
    ...{ secret, incidents, outbox },
    log: log.forHandlers,
    check: whenAllRead(check),
    clock: whenAllRead({ read: clock.read, aheadS: clock.aheadS, notAfter: clock.notAfter }),
    events: createEventReads(queries),
    filings: filingReads,
    countCalls: async ({ callerId, month }) => {
      const { rows } = await queries.query<{ calls: number }>(
        'SELECT calls FROM usage WHERE caller_id = $1 AND month = $2 ORDER BY calls DESC LIMIT 1',
        [callerId, month],
      );
      return rows[0]?.calls ?? 0;
    },
    erasure: createErasure(queries),
  });
  const hot = createFilingHandlers({
    ...{ tables: { ...filings.tables, insert }, incidents, log: log.log, clock, outbox, check },
  });
  const handlers: Handlers = {
    ...shared.all,
    ...instances,
    ...createRateHandler(queries),
    FileArtwork: { ...hot.FileArtwork, run: (command) => whenRead(() => hot.FileArtwork.run(command)) },
    GetFiling: { ...hot.GetFiling, run: (command) => whenRead(() => hot.GetFiling.run(command)) },
    ReadLogClock: reads(async (command) => ({
      ...(await shared.all.ReadLogClock.run(command)),
      databaseMs: await readClock(queries),
    })),
    GetProvenance: { ...hot.GetProvenance, run: (command) => whenRead(() => hot.GetProvenance.run(command)) },
    // Each transaction that writes inserts a row for its batch.
    RewriteNothing: writesLast(async () => undefined),
  };
  return { all: handlers, callers: shared.callers, log, times, outbox, filings };
}

type Functions<T> = { readonly [Name in keyof T]: (...args: never[]) => unknown };

/** The same functions, each run when all that it needs was read. */
function whenAllRead<T extends Functions<T>>(functions: T) {
  const entries = Object.entries<(...args: unknown[]) => unknown>(functions as never);
  const waiting = entries.map(([name, run]) => [
    name,
    async (...args: unknown[]) => whenRead(() => run(...args)),
  ]);
  return Object.fromEntries(waiting);
}

/**
 * Reads the trusted time, once for as long as nothing is filed, and the lead of the business clock, once for as long as no command can
 * change it.
 */
function createTimes(queries: Queries, flush: () => Promise<void>) {
  let trusted: { readonly atS: number | undefined } | undefined;
  let lead: number | undefined;

  async function select(): Promise<void> {
    await flush();
    const { rows } = await queries.query<{ atS: number | null; aheadS: number | null }>(selectTime);
    trusted = { atS: rows[0]?.atS ?? undefined };
    lead = rows[0]?.aheadS ?? 0;
  }

  const needed = () => new Needed('The trusted time', select);

  return {
    read: (): number | undefined => {
      if (trusted === undefined) throw needed();
      return trusted.atS;
    },
    aheadS: (): number => {
      if (lead === undefined) throw needed();
      return lead;
    },
    filed: (): void => {
      trusted = undefined;
    },
    /** Forgets both, or takes the lead that was read. */
    forget: (aheadS?: number): void => {
      trusted = undefined;
      lead = aheadS;
    },
  };
}

/** The time of the newest filing, or the one that an operator accepted since. */
const selectTime = {
  name: 'select time',
  text: `SELECT coalesce(
      (SELECT time_s FROM log_event WHERE kind = 'CLOCK_ACCEPTED'
        AND leaf_index > coalesce((SELECT leaf_index FROM filing ORDER BY id DESC LIMIT 1), -1)
        ORDER BY sequence DESC LIMIT 1),
      (SELECT filed_at_s FROM filing ORDER BY id DESC LIMIT 1)) AS "atS",
    (SELECT clock_ahead_s FROM deployment) AS "aheadS"`,
};

function createErasure(queries: Queries): Erasure {
  return {
    begin: async () => {},
    endOfRetention: async (nowS, aheadS) => {
      const { rows } = await queries.query<{ end: number }>({ ...selectEnd, values: [nowS, aheadS] });
      return rows[0]?.end ?? 0;
    },
  };
}

/** A day earlier, since a day ends later in the west than in UTC. */
const selectEnd = {
  name: 'select end',
  text: `SELECT floor(extract(epoch FROM least(to_timestamp($1), now()) + $2::bigint * interval '1 second'
      - interval '${retentionYears} years 1 day'))::bigint AS end`,
};
