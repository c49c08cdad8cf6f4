import { randomBytes } from 'node:crypto';
import { closeSync, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { type BetterSQLite3Database, drizzle } from 'drizzle-orm/better-sqlite3';
import type { StoreOptions } from '../store.ts';
import { findLost } from './leftovers.ts';
import { DatabaseRefused, databaseFile } from './location.ts';
import { readMigrations } from './migrations.ts';
import { nonceFingerprint, writeEntries } from './nonce-entries.ts';
import { deployment } from './schema.ts';

/** Drizzle over the one connection of this process; `$client` is the connection. */
export type Database = BetterSQLite3Database & { $client: Sqlite.Database };

/** What a database is made for, once and for all. */
type Stamps = Pick<StoreOptions, 'environment' | 'currency'>;

/** The file that the serving process locks. */
export const servingLockName = 'serving.lock';
/** Of files that are nobody else's to read or write. */
export const privateMode = 0o600;

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
 * Opens the database in a data folder: makes it if `opening` allows that, stamps and migrates it as need be. Throws
 * DatabaseRefused.
 */
export function openDatabase({
  dataDir,
  opening,
  environment,
  currency,
  madeLater = [],
}: StoreOptions): Database {
  const file = databaseFile(dataDir);
  const stamps = { environment, currency };
  try {
    // It is made at the first start of serving, on a database that is complete.
    const lost = findLost(file, [...madeLater, servingLockName]);
    if (lost !== undefined) throw new DatabaseRefused(lost);
    if (opening === 'EXISTING') {
      if (!existsSync(file)) throw missing(file, stamps);
    } else {
      makeFolder(dirname(file));
      // SQLite gives its log files the mode of the database.
      makePrivateFile(file);
    }
    return openFile(file, opening, stamps);
  } catch (error) {
    if (error instanceof DatabaseRefused || !(error instanceof Error && 'code' in error)) throw error;
    const rule =
      'ARTSEAL_DATA_DIR must name a folder that this user can write, with the database of Artseal or none';
    throw new DatabaseRefused(`${file} cannot be used: ${error.message}; ${rule}.`, { cause: error });
  }
}

function openFile(file: string, opening: StoreOptions['opening'], stamps: Stamps): Database {
  const client = new Sqlite(file, { timeout: busyTimeoutMs });
  try {
    // A file without a schema is what is left of a creation that was cut off.
    const isMade = schemaVersion(client) > 0;
    if (!isMade && opening === 'EXISTING') throw missing(file, stamps);
    if (isMade && opening === 'NEW') throw alreadyThere(file);
    client.pragma('journal_mode = WAL');
    client.pragma('synchronous = FULL');
    client.pragma('foreign_keys = ON');
    client.pragma('trusted_schema = OFF');
    client.pragma(`wal_autocheckpoint = ${checkpointPages}`);
    client.pragma(`journal_size_limit = ${keptLogBytes}`);
    client.pragma(`cache_size = -${cacheKiB}`);
    const database = drizzle({ client });
    client
      .transaction(() => {
        migrate(client);
        stamp(database, stamps);
      })
      .immediate();
    return database;
  } catch (error) {
    client.close();
    throw error;
  }
}

function missing(file: string, { environment }: Stamps): DatabaseRefused {
  const make = environment === 'sandbox' ? 'run artseal init or start artseal serve' : 'run artseal init';
  return new DatabaseRefused(
    `there is no database in ${dirname(file)}: ${make}, or set ARTSEAL_DATA_DIR to the folder of one.`,
  );
}

function alreadyThere(file: string): DatabaseRefused {
  return new DatabaseRefused(
    `${file} is there already: use it as it is, or set ARTSEAL_DATA_DIR to another folder.`,
  );
}

/** How many migrations a database has seen; 0 for an empty file. */
export function schemaVersion(client: Sqlite.Database): number {
  return Number(client.pragma('user_version', { simple: true }));
}

/** The schema that this version works on. */
export function knownSchema(): number {
  return readMigrations().length;
}

/**
 * Makes a file that nobody else may read, if there is none. One that exists is never opened: closing it would drop the
 * locks that this process has on it.
 */
export function makePrivateFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', privateMode));
}

/** Applies the migrations that the database has not seen; its user_version counts those that it has. */
function migrate(client: Sqlite.Database): void {
  client.function('nonce_entry', (name: string, atS: number) =>
    writeEntries([{ fingerprint: nonceFingerprint(name), atS }]),
  );
  const migrations = readMigrations();
  const applied = schemaVersion(client);
  if (applied > migrations.length) {
    throw new DatabaseRefused(
      `${client.name} was made by a newer artseal (schema ${applied}; this one knows ${migrations.length}).`,
    );
  }
  for (const migration of migrations.slice(applied)) client.exec(migration);
  // Written only when it changes: other processes take any write for a change of what they have read.
  if (applied < migrations.length) client.pragma(`user_version = ${migrations.length}`);
}

/** Stamps a database with what it lacks; refuses one that bears something else. */
function stamp(database: Database, stamps: Stamps): void {
  const stamped = database.select().from(deployment).get();
  if (stamped === undefined) {
    database
      .insert(deployment)
      .values({ id: 1, ...stamps, escrowIdKey: randomBytes(32) })
      .run();
    return;
  }
  const { environment, currency } = stamped;
  const refuse = (difference: string, variable: string) => {
    throw new DatabaseRefused(
      `${database.$client.name} belongs to a ${difference}: ` +
        `set ${variable} to match, or use another ARTSEAL_DATA_DIR.`,
    );
  };
  if (environment !== stamps.environment) {
    refuse(`${environment} deployment and cannot open as ${stamps.environment}`, 'ARTSEAL_ENVIRONMENT');
  }
  if (currency === null) {
    database.update(deployment).set({ currency: stamps.currency }).run();
  } else if (currency !== stamps.currency) {
    refuse(`deployment in ${currency} and cannot open in ${stamps.currency}`, 'ARTSEAL_CURRENCY');
  }
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
