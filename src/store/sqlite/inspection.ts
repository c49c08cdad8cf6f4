import { statSync } from 'node:fs';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { createIncidents, driverError } from '../engine/failure.ts';
import { deployment } from '../engine/schema.ts';
import { type Content, type LookAtLog, readContent } from '../handlers/content.ts';
import { logNamesIn } from '../handlers/log-handlers.ts';
import type { LogNames } from '../log-commands.ts';
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
  const bound = database.select().from(deployment).get();
  if (bound === undefined) return undefined;
  const leaves = createLeaves(database);
  const log = createEvidenceLog(database, leaves);
  const parts = {
    database: forHandlers(database),
    deployment: bound,
    filings: createFilingReads(database, createIncidents(classifyError)),
    log: logForHandlers(log, leaves),
    findFaults: () => faultsInOpenLog(database),
    readTimes: async () => ({
      newestS: log.newestS(),
      datedS: createTrustedClock(database, log).read(),
    }),
  };
  return readContent(parts, year, lookAtLog);
}
