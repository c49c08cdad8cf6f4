import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import type { StoreOptions } from '../store.ts';
import type { Database } from './connection.ts';
import { damaged } from './damage.ts';
import { makePrivateFile } from './durable-files.ts';
import { cannotUse, DatabaseError, databaseFile, findLost, servingLockName } from './location.ts';
import { deployment } from './schema.ts';
import { beginUpgrade, migrate, schemaOf, type UpgradeRules } from './upgrade.ts';

/** The environment and currency that a database is bound to. */
type Binding = Pick<StoreOptions, 'environment' | 'currency'>;

/** How long a write waits for another process, in milliseconds. `artseal key` locks the file for a far shorter time. */
export const busyTimeoutMs = 2_000;
/** The same for the serving process, whose callers wait as well. */
export const servingBusyTimeoutMs = 250;
/** Pages of 4 KiB in the write-ahead log before SQLite writes them into the database. */
const checkpointPages = 4_000;
/** The size to which SQLite cuts the log file after a checkpoint, in bytes: a long reader lets it grow. */
const keptLogBytes = 33_554_432;
/** Page cache, in KiB. Most pages are written in order and not read again, and the system caches the file as well. */
const cacheKiB = 4_096;

/**
 * Opens the database in a data folder: creates it if `opening` allows that, binds it, and migrates it under the serving lock
 * after a copy was made. `inspect` reads an existing database before anything in it is changed, and may throw. Throws
 * DatabaseError.
 */
export function openDatabase(
  { dataDir, opening, environment, currency, madeLater = [] }: StoreOptions,
  rules: Partial<UpgradeRules> = {},
  inspect: (client: Sqlite.Database) => void = () => {},
): Database {
  const file = databaseFile(dataDir);
  const binding = { environment, currency };
  try {
    // The serving lock is created when serving begins, on a complete database.
    const lost = findLost(file, [...madeLater, servingLockName]);
    if (lost !== undefined) throw new DatabaseError(lost);
    if (opening === 'EXISTING') {
      if (!existsSync(file)) throw missing(file, binding);
    } else {
      createFolder(dirname(file));
      // SQLite gives its log files the mode of the database.
      makePrivateFile(file);
    }
    return openFile(file, opening, binding, rules, inspect);
  } catch (error) {
    if (error instanceof DatabaseError || !(error instanceof Error && 'code' in error)) throw error;
    if (error.code === 'SQLITE_CORRUPT') throw damaged(file, error.message);
    throw cannotUse(file, error);
  }
}

function openFile(
  file: string,
  opening: StoreOptions['opening'],
  binding: Binding,
  rules: Partial<UpgradeRules>,
  inspect: (client: Sqlite.Database) => void,
): Database {
  const client = new Sqlite(file, { timeout: busyTimeoutMs });
  try {
    // A file without a schema is left of an interrupted creation.
    const isMade = schemaOf(client) > 0;
    if (!isMade && opening === 'EXISTING') throw missing(file, binding);
    if (isMade && opening === 'NEW') throw alreadyThere(file);
    client.pragma('journal_mode = WAL');
    client.pragma('synchronous = FULL');
    client.pragma('foreign_keys = ON');
    client.pragma('trusted_schema = OFF');
    client.pragma(`wal_autocheckpoint = ${checkpointPages}`);
    client.pragma(`journal_size_limit = ${keptLogBytes}`);
    client.pragma(`cache_size = -${cacheKiB}`);
    // Rows that move within the file leave no copies that erasure would miss. FAST writes no extra pages for it.
    client.pragma('secure_delete = FAST');
    const database = drizzle({ client });
    if (isMade) inspect(client);
    if (isMade) checkBinding(client, binding);
    using upgrade = beginUpgrade(client, rules);
    client
      .transaction(() => {
        upgrade.keepCopy();
        migrate(client);
        bind(database, binding);
      })
      .immediate();
    upgrade.dropOldCopies();
    return database;
  } catch (error) {
    client.close();
    throw error;
  }
}

function missing(file: string, { environment }: Binding): DatabaseError {
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

/** Throws if a database is bound to another environment or currency. It may have the schema of any release. */
function checkBinding(client: Sqlite.Database, binding: Binding): void {
  const bound = client.prepare<[], Partial<Binding>>('SELECT * FROM deployment').get();
  if (bound === undefined) return;
  const { environment, currency } = bound;
  const reject = (difference: string, variable: string) => {
    throw new DatabaseError(
      `${client.name} belongs to a ${difference}: set ${variable} to match, or use another ARTSEAL_DATA_DIR.`,
    );
  };
  if (environment !== binding.environment) {
    reject(`${environment} deployment and cannot open as ${binding.environment}`, 'ARTSEAL_ENVIRONMENT');
  }
  if ((currency ?? binding.currency) !== binding.currency) {
    reject(`deployment in ${currency} and cannot open in ${binding.currency}`, 'ARTSEAL_CURRENCY');
  }
}

/** Binds a new database, and gives it its secret. */
function bind(database: Database, binding: Binding): void {
  if (database.select().from(deployment).get() !== undefined) return;
  database
    .insert(deployment)
    .values({ id: 1, ...binding, secret: randomBytes(32) })
    .run();
}

/**
 * Creates a folder and its parents. `mkdirSync` with `recursive` never returns if a parent can neither be found nor created.
 */
function createFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) createFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process that starts at the same moment may have created it.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}
