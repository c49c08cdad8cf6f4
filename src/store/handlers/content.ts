import { desc, eq, type InferSelectModel } from 'drizzle-orm';
import type { FilingReads, Log } from '../engine/parts.ts';
import { apiKey, caller, type deployment, filing } from '../engine/schema.ts';
import type { Database } from '../engine/statement.ts';
import type { LogClock } from '../evidence-commands.ts';
import type { LogState } from '../log-commands.ts';
import type { CapUse, RegistryMetrics } from '../metric-commands.ts';
import type { ReadTree } from '../store.ts';
import { keyColumns } from './callers.ts';
import { createTreeReads } from './evidence-handlers.ts';
import { createUsedNumbers } from './filing-numbers.ts';
import { logStateIn } from './log-handlers.ts';
import { lastRestoration } from './restorations.ts';
import { createWebhookRows, toWebhook } from './webhooks.ts';

/** The used numbers of a year, in total and by the platforms that are nearest to their caps. */
export interface UsedNumbers extends Pick<RegistryMetrics, 'filingNumbers' | 'escrowNumbers'> {
  readonly caps: readonly CapUse[];
}

/** Platforms in a report, at most. */
const capsMax = 10;

/** The content of a database, as `check` reports it. */
export type Content<T> = Awaited<ReturnType<typeof readContent<T>>>;

/** Examines the evidence log. `faults` are those of the log and its records, as in backups. */
export type LookAtLog<T> = (state: LogState, read: ReadTree, faults: readonly string[]) => Promise<T>;

/** What an engine gives to read the content of a database. */
interface Parts {
  readonly database: Database;
  readonly deployment: InferSelectModel<typeof deployment>;
  readonly filings: Pick<FilingReads, 'caps'>;
  readonly log: Pick<Log, 'read'>;
  readonly findFaults: () => Promise<readonly string[]>;
  readonly readTimes: () => Promise<Pick<LogClock, 'newestS' | 'datedS'>>;
}

/** Reads the content of a database. `year` is one of the business calendar. */
export async function readContent<T>(parts: Parts, year: number, lookAtLog: LookAtLog<T>) {
  const { database, filings } = parts;
  const { environment, currency, provider } = parts.deployment;
  const keys = await database
    .select(keyColumns)
    .from(apiKey)
    .innerJoin(caller, eq(caller.id, apiKey.callerId))
    .all();
  const { filedAtS } = filing;
  const newest = await database.select({ filedAtS }).from(filing).orderBy(desc(filing.id)).limit(1).get();
  const usedNumbers = createUsedNumbers(database);
  const log = await logStateIn(database);
  const faults = await parts.findFaults();
  // The time of a damaged log means nothing.
  const times = faults.length === 0 ? await parts.readTimes() : undefined;
  return {
    ...{ environment, currency, provider, keys, log },
    webhooks: (await createWebhookRows(database).select().all()).map(toWebhook),
    /** The last one; undefined if there was none. */
    restoration: await lastRestoration(database),
    /** The result of `lookAtLog`. */
    foundInLog: await lookAtLog(log, createTreeReads(parts.log.read), faults),
    numbers: { ...(await usedNumbers(year)), caps: await filings.caps(year, capsMax) } satisfies UsedNumbers,
    /** Unix milliseconds; undefined if there is none. */
    newestFilingMs: newest && newest.filedAtS * 1_000,
    /** The time of the newest leaf of the evidence log, Unix seconds; undefined if there is none. */
    newestLeafS: times?.newestS,
    /** The trusted time, Unix seconds; undefined if there is none. */
    datedS: times?.datedS,
  };
}
