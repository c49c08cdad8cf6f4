import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import type { StoreOptions } from '../store.ts';
import type { Database } from './connection.ts';
import { damaged } from './damage.ts';
import { makePrivateFile } from './durable-files.ts';
import { findLost } from './leftovers.ts';
import { cannotUse, DatabaseError, databaseFile, servingLockName } from './location.ts';
import { migrate, schemaOf } from './migrations.ts';
import { deployment } from './schema.ts';
import { beginUpgrade, type UpgradeRules } from './upgrade.ts';

/** What a database is made for, once and for all. */
type Stamps = Pick<StoreOptions, 'environment' | 'currency'>;

/** How long a write waits for another process's, in milliseconds; `artseal key` holds the file far shorter. */
export const busyTimeoutMs = 2_000;
/** The same for the process that takes calls, whose callers wait as well. */
export const servingBusyTimeoutMs = 250;
/** Pages of 4 KiB in the log before it is folded into the database. */
const checkpointPages = 4_000;
/** Bytes of the log file that are kept when it is written from its beginning again: what a long reader let grow goes back to this. */
const keptLogBytes = 33_554_432;
/** Page cache, in KiB. Most pages are written in their order and not read again; the system caches the file as well. */
const cacheKiB = 4_096;

/**
 * Opens the database in a data folder: makes it if `opening` allows that, stamps and migrates it as need be, the latter
 * behind the serving lock and when a copy was made. `inspect` looks at one that is there before anything in it is changed, and
 * may throw. Throws DatabaseError.
 */
export function openDatabase(
  { dataDir, opening, environment, currency, madeLater = [] }: StoreOptions,
  rules: Partial<UpgradeRules> = {},
  inspect: (client: Sqlite.Database) => void = () => {},
): Database {
  const file = databaseFile(dataDir);
  const stamps = { environment, currency };
  try {
    // It is made at the first start of serving, on a database that is complete.
    const lost = findLost(file, [...madeLater, servingLockName]);
    if (lost !== undefined) throw new DatabaseError(lost);
    if (opening === 'EXISTING') {
      if (!existsSync(file)) throw missing(file, stamps);
    } else {
      makeFolder(dirname(file));
      // SQLite gives its log files the mode of the database.
      makePrivateFile(file);
    }
    return openFile(file, opening, stamps, rules, inspect);
  } catch (error) {
    if (error instanceof DatabaseError || !(error instanceof Error && 'code' in error)) throw error;
    if (error.code === 'SQLITE_CORRUPT') throw damaged(file, error.message);
    throw cannotUse(file, error);
  }
}

function openFile(
  file: string,
  opening: StoreOptions['opening'],
  stamps: Stamps,
  rules: Partial<UpgradeRules>,
  inspect: (client: Sqlite.Database) => void,
): Database {
  const client = new Sqlite(file, { timeout: busyTimeoutMs });
  try {
    // A file without a schema is what is left of a creation that was cut off.
    const fromSchema = schemaOf(client);
    const isMade = fromSchema > 0;
    if (!isMade && opening === 'EXISTING') throw missing(file, stamps);
    if (isMade && opening === 'NEW') throw alreadyThere(file);
    client.pragma('journal_mode = WAL');
    client.pragma('synchronous = FULL');
    client.pragma('foreign_keys = ON');
    client.pragma('trusted_schema = OFF');
    client.pragma(`wal_autocheckpoint = ${checkpointPages}`);
    client.pragma(`journal_size_limit = ${keptLogBytes}`);
    client.pragma(`cache_size = -${cacheKiB}`);
    // What moves within the file leaves no copy behind that erasing it would not find; without a page written for that.
    client.pragma('secure_delete = FAST');
    const database = drizzle({ client });
    if (isMade) inspect(client);
    if (isMade) checkStamps(client, stamps);
    using upgrade = beginUpgrade(client, rules);
    client
      .transaction(() => {
        upgrade.keepCopy();
        migrate(client);
        stamp(database, stamps);
      })
      .immediate();
    upgrade.dropOldCopies();
    const toSchema = schemaOf(client);
    if (isMade && toSchema !== fromSchema) rules.onUpgrade?.({ fromSchema, toSchema });
    return database;
  } catch (error) {
    client.close();
    throw error;
  }
}

function missing(file: string, { environment }: Stamps): DatabaseError {
  const make = environment === 'sandbox' ? 'run artseal init or start artseal serve' : 'run artseal init';
  return new DatabaseError(
    `there is no database in ${dirname(file)}: ${make}, or set ARTSEAL_DATA_DIR to the folder of one.`,
  );
}

function alreadyThere(file: string): DatabaseError {
  return new DatabaseError(
    `${file} is there already: use it as it is, or set ARTSEAL_DATA_DIR to another folder.`,
  );
}

/** Refuses a database that bears other stamps. It may have the schema of any release. */
function checkStamps(client: Sqlite.Database, stamps: Stamps): void {
  const stamped = client.prepare<[], Partial<Stamps>>('SELECT * FROM deployment').get();
  if (stamped === undefined) return;
  const { environment, currency } = stamped;
  const refuse = (difference: string, variable: string) => {
    throw new DatabaseError(
      `${client.name} belongs to a ${difference}: set ${variable} to match, or use another ARTSEAL_DATA_DIR.`,
    );
  };
  if (environment !== stamps.environment) {
    refuse(`${environment} deployment and cannot open as ${stamps.environment}`, 'ARTSEAL_ENVIRONMENT');
  }
  if ((currency ?? stamps.currency) !== stamps.currency) {
    refuse(`deployment in ${currency} and cannot open in ${stamps.currency}`, 'ARTSEAL_CURRENCY');
  }
}

/** Stamps a database with what it lacks. */
function stamp(database: Database, stamps: Stamps): void {
  if (database.select().from(deployment).get() !== undefined) return;
  database
    .insert(deployment)
    .values({ id: 1, ...stamps, secret: randomBytes(32) })
    .run();
}

/**
 * Makes a folder and those above it. `mkdirSync` with `recursive` never returns where a parent can be neither
 * found nor made.
 */
function makeFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) makeFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process that starts at the same moment may have made it.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
