import { statSync } from 'node:fs';
import { desc, eq } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { createIncidents, driverError } from '../engine/failure.ts';
import { apiKey, caller, deployment, filing } from '../engine/schema.ts';
import { keyColumns } from '../handlers/callers.ts';
import { createTreeReads } from '../handlers/evidence-handlers.ts';
import { logNamesIn, logStateIn } from '../handlers/log-handlers.ts';
import { createNumberMetrics } from '../handlers/metrics.ts';
import { lastRestoration } from '../handlers/restorations.ts';
import { createWebhookRows, toWebhook } from '../handlers/webhooks.ts';
import type { LogNames, LogState } from '../log-commands.ts';
import type { CapUse, RegistryMetrics } from '../metric-commands.ts';
import type { ReadTree } from '../store.ts';
import { logForHandlers } from './all-handlers.ts';
import { damaged, damagesOf } from './database.ts';
import { createFilingReads } from './filing-chains.ts';
import { cannotUse, databaseFile } from './location.ts';
import { createEvidenceLog, createLeaves } from './log.ts';
import { faultsInOpenLog } from './log-check.ts';
import { openToRead } from './reading.ts';
import { classifyError, isDamage } from './sqlite-errors.ts';
import { forHandlers, type SqliteDatabase } from './statement.ts';
import { createTrustedClock } from './trusted-clock.ts';
import { migrations, schemaOf, tooNew } from './upgrade.ts';

/** A report about a database. */
export interface Inspection<T> {
  readonly bytes: number;
  readonly schema: number;
  /** The schema that this version upgrades to. */
  readonly knownSchema: number;
  /** Why this version cannot use it, although it is sound; undefined if it can. */
  readonly tooNew: string | undefined;
  /** The faults that SQLite finds in the file, in its own words. */
  readonly damages: readonly string[];
  /** The origins of its evidence log. */
  readonly logNames: LogNames;
  /** Undefined if the database is damaged, has an older schema or is too new. */
  readonly content: Content<T> | undefined;
}

/** The used numbers of a year, in total and by the platforms that are nearest to their caps. */
export interface UsedNumbers extends Pick<RegistryMetrics, 'filingNumbers' | 'escrowNumbers'> {
  readonly caps: readonly CapUse[];
}

/** Platforms in a report, at most. */
const capsMax = 10;

/** The content of a database. */
export type Content<T> = NonNullable<Awaited<ReturnType<typeof contentOf<T>>>>;

/** Examines the evidence log. `faults` are those of the log and its records, as in backups. */
type LookAtLog<T> = (state: LogState, read: ReadTree, faults: readonly string[]) => Promise<T>;

/**
 * Reads the database of a data folder, which another process may use; undefined if there is none. It migrates nothing and leaves no
 * new file. It reads the whole file, and calls `lookAtLog` meanwhile. `year` is one of the business calendar.
 */
export async function inspectDatabase<T>(
  dataDir: string,
  year: number,
  lookAtLog: LookAtLog<T>,
): Promise<Inspection<T> | undefined> {
  const file = databaseFile(dataDir);
  const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  if (bytes === 0) return undefined;
  const client = openToRead(file);
  try {
    const schema = schemaOf(client);
    const knownSchema = migrations.length;
    const damages = damagesOf(client);
    const reason = damages.length === 0 ? tooNew(client) : undefined;
    const isReadable = damages.length === 0 && reason === undefined && schema >= knownSchema;
    const content = isReadable ? await contentOf(drizzle({ client }), year, lookAtLog) : undefined;
    const logNames = damages.length === 0 ? await logNamesIn(forHandlers({ $client: client })) : noNames;
    return { bytes, schema, knownSchema, tooNew: reason, damages, logNames, content };
  } catch (error) {
    throw driverError(error);
  } finally {
    client.close();
  }
}

/** The origins of the evidence log of a data folder. Its database may have any schema. Throws DatabaseError. */
export async function readLogNames(dataDir: string): Promise<LogNames> {
  const file = databaseFile(dataDir);
  let client: ReturnType<typeof openToRead> | undefined;
  try {
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) === 0) return noNames;
    client = openToRead(file);
    return await logNamesIn(forHandlers({ $client: client }));
  } catch (thrown) {
    const error = driverError(thrown);
    throw isDamage(error) ? damaged(file, error.message) : cannotUse(file, error as Error);
  } finally {
    client?.close();
  }
}

const noNames: LogNames = { names: [], origin: undefined };

async function contentOf<T>(database: SqliteDatabase, year: number, lookAtLog: LookAtLog<T>) {
  const stamps = database.select().from(deployment).get();
  if (stamps === undefined) return undefined;
  const { environment, currency, provider } = stamps;
  const keys = database
    .select(keyColumns)
    .from(apiKey)
    .innerJoin(caller, eq(caller.id, apiKey.callerId))
    .all();
  const newest = database
    .select({ filedAtS: filing.filedAtS })
    .from(filing)
    .orderBy(desc(filing.id))
    .limit(1)
    .get();
  const shared = forHandlers(database);
  const numbers = createNumberMetrics(shared, createFilingReads(database, createIncidents(classifyError)));
  const log = await logStateIn(shared);
  const faults = await faultsInOpenLog(database);
  // The time of a damaged log means nothing.
  const leaves = createLeaves(database);
  const unchecked = createEvidenceLog(database, leaves);
  const evidence = faults.length === 0 ? unchecked : undefined;
  return {
    environment,
    currency,
    provider,
    keys,
    webhooks: (await createWebhookRows(shared).select().all()).map(toWebhook),
    /** The last one; undefined if there was none. */
    restoration: await lastRestoration(shared),
    log,
    /** The result of `lookAtLog`. */
    foundInLog: await lookAtLog(log, createTreeReads(logForHandlers(unchecked, leaves).read), faults),
    numbers: { ...(await numbers.used(year)), caps: await numbers.caps(year, capsMax) } satisfies UsedNumbers,
    /** Unix milliseconds; undefined if there is none. */
    newestFilingMs: newest && newest.filedAtS * 1_000,
    /** The time of the newest leaf of the evidence log, Unix seconds; undefined if there is none. */
    newestLeafS: evidence?.newestS(),
    /** The trusted time, Unix seconds; undefined if there is none. */
    datedS: evidence && createTrustedClock(database, evidence).read(),
  };
}
