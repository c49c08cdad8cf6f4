import { retentionYears } from '../../domain/filing.ts';
import type { EvidenceLog } from '../engine/evidence-log.ts';
import type { Incidents } from '../engine/failure.ts';
import { createFilingHandlers } from '../engine/filings.ts';
import { type Handlers, reads, writesLast } from '../engine/handlers.ts';
import type { Asynchronous, Erasure, Log } from '../engine/parts.ts';
import { createRecordCheck } from '../engine/record-check.ts';
import { createSharedHandlers } from '../handlers/all-handlers.ts';
import type { InstanceFacts } from '../instance-commands.ts';
import { countCalls } from './admission.ts';
import { deploymentOf } from './database.ts';
import { createEventReads } from './events.ts';
import { createFilingReads } from './filing-chains.ts';
import { createFilingTables } from './filings.ts';
import { createEvidenceLog, createLeaves, type SqliteLeaves } from './log.ts';
import { createOutbox } from './outbox.ts';
import { forHandlers, type SqliteDatabase } from './statement.ts';
import { createTrustedClock } from './trusted-clock.ts';

/** Makes the handlers of all commands, and what they share with the transaction that they run in. */
export function createHandlers(database: SqliteDatabase, incidents: Incidents) {
  const { $client: client } = database;
  const { secret, environment } = deploymentOf(database);
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves, incidents, environment === 'sandbox');
  const clock = createTrustedClock(database, log);
  const outbox = createOutbox(database, clock);
  const check = createRecordCheck({ ...log, leaves }, incidents);
  const calls = countCalls(database);
  const shared = createSharedHandlers({
    database: forHandlers(database),
    ...{ secret, incidents },
    log: logForHandlers(log, leaves),
    check: asynchronous(check),
    clock: asynchronous(clock),
    outbox,
    events: asynchronous(createEventReads(database)),
    filings: createFilingReads(database, incidents),
    countCalls: async (of) => calls(of),
    erasure: createErasure(database),
  });
  const tables = createFilingTables(database);
  const hot = createFilingHandlers({ tables, incidents, log, clock, outbox, check });
  const all: Handlers = {
    ...shared.all,
    ...hot,
    ...createInstanceHandlers(),
    MergeRates: reads(() => []),
    // Setting the schema version writes the first page even if it stays the same. A row that stays the same is not written.
    RewriteNothing: writesLast(() => {
      client.pragma(`user_version = ${client.pragma('user_version', { simple: true })}`);
      return undefined;
    }),
  };
  return { all, hot, callers: shared.callers, log, outbox };
}

/** Handlers of the only process that uses the database. */
function createInstanceHandlers(): Handlers<'JoinInstances' | 'ListInstances'> {
  let joined: InstanceFacts | undefined;
  return {
    JoinInstances: reads(({ facts }) => {
      joined = facts;
      return [];
    }),
    ListInstances: reads(() =>
      joined ? [{ facts: joined, unseenMs: 0, isGone: false, isLeading: true, isOwn: true }] : [],
    ),
  };
}

/** The log as handlers use it. */
export const logForHandlers = (log: EvidenceLog, leaves: SqliteLeaves): Log => ({
  appendRecord: async (record) => log.appendRecord(record),
  appendLogEvent: async (kind, atS, detail) => log.appendLogEvent(kind, atS, detail),
  newestS: async () => log.newestS(),
  read: async (work) => work({ tree: log.tree, index: log.index, leaves }),
});

type Functions = Readonly<Record<string, (...args: never[]) => unknown>>;

/** The same functions, to be awaited. */
export function asynchronous<T extends { readonly [Name in keyof T]: Functions[string] }>(
  functions: T,
): Asynchronous<T> {
  const entries = Object.entries<(...args: unknown[]) => unknown>(functions as never);
  const awaited = entries.map(([name, run]) => [name, async (...args: unknown[]) => run(...args)]);
  return Object.fromEntries(awaited);
}

const ago = `-${retentionYears} years`;

/** Five years before the 29th of February is the 1st of March for SQLite; and a day ends later in the west than in UTC. */
const margin = '-1 day';

function createErasure({ $client: client }: SqliteDatabase): Erasure {
  const end = client.prepare<[number, number], number>(
    `SELECT unixepoch(min(?, unixepoch('now')) + ?, 'unixepoch', '${ago}', '${margin}')`,
  );
  return {
    // Overwrites erased data in the file, too, even if that writes more pages.
    begin: async () => void client.pragma('secure_delete = ON'),
    endOfRetention: async (nowS, aheadS) => end.pluck().get(nowS, aheadS) ?? 0,
  };
}
