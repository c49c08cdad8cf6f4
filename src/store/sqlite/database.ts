import { randomBytes } from 'node:crypto';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { InferSelectModel } from 'drizzle-orm';
import { drizzle } from 'drizzle-orm/better-sqlite3';
import { createDistribution, durationBoundsS } from '../../lib/distribution.ts';
import { DatabaseError } from '../engine/failure.ts';
import { deployment } from '../engine/schema.ts';
import type { SchemaUpgrade, StoreOptions } from '../store.ts';
import { createFolder, makePrivateFile } from './durable-files.ts';
import { type FolderLock, lockFolder } from './folder-lock.ts';
import { cannotUse, databaseFile, findLost, folderLockName } from './location.ts';
import { busyTimeoutMs } from './reading.ts';
import type { SqliteDatabase } from './statement.ts';
import { beginUpgrade, migrate, schemaOf, type UpgradeRules } from './upgrade.ts';

/** The environment and currency that a database is bound to. */
type Binding = Pick<StoreOptions, 'environment' | 'currency'>;

/** Pages of 4 KiB in the write-ahead log before SQLite writes them into the database. */
const checkpointPages = 4_000;
/** The size to which SQLite cuts the log file after a checkpoint, in bytes: a long reader lets it grow. */
const keptLogBytes = 33_554_432;
/** Page cache, in KiB. Most pages are written in order and not read again, and the system caches the file as well. */
const cacheKiB = 4_096;

/** The database of a data folder that no other process uses. */
export interface OpenedDatabase {
  readonly database: SqliteDatabase;
  /** Lets other processes use the folder. */
  close(): void;
}

/** Reads an existing database. `isCutOff` says whether the last process that used it did not close it. */
type Inspect = (client: Sqlite.Database, isCutOff: boolean) => void;

/**
 * Locks a data folder and opens its database: creates it if `opening` allows that, binds it, and migrates it after a copy was
 * made. `inspect` reads an existing database before anything in it is changed, and may throw. Throws FolderInUse and DatabaseError.
 */
export function openDatabase(
  options: StoreOptions,
  rules: Partial<UpgradeRules> = {},
  inspect: Inspect = () => {},
): OpenedDatabase {
  const { dataDir, opening, environment, currency, madeLater = [] } = options;
  const file = databaseFile(dataDir);
  const binding = { environment, currency };
  let lock: FolderLock | undefined;
  try {
    const lostBefore = findLost(file, madeLater);
    // Without a lock file no other process creates the database now, and this one leaves none.
    if (lostBefore !== undefined && !existsSync(join(dataDir, folderLockName)))
      throw new DatabaseError(lostBefore);
    if (opening !== 'EXISTING') createFolder(dirname(file));
    else if (!existsSync(file)) throw new DatabaseError(lostBefore ?? missing(file, binding));
    lock = lockFolder(dirname(file), options.lockTimeoutMs);
    const lost = findLost(file, madeLater);
    if (lost !== undefined) throw new DatabaseError(lost);
    // SQLite gives its log files the mode of the database.
    if (opening !== 'EXISTING') makePrivateFile(file);
    const isCutOff = wasCutOff(options);
    const database = openFile(file, opening, binding, rules, (client) => inspect(client, isCutOff));
    const { release } = lock;
    return {
      database,
      close: () => {
        database.$client.close();
        release();
      },
    };
  } catch (error) {
    lock?.release();
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
): SqliteDatabase {
  const client = new Sqlite(file, { timeout: busyTimeoutMs });
  try {
    // A file without a schema is left of an interrupted creation.
    const isMade = schemaOf(client) > 0;
    if (!isMade && opening === 'EXISTING') throw new DatabaseError(missing(file, binding));
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
    const upgrade = beginUpgrade(client, rules);
    client
      .transaction(() => {
        upgrade?.keepCopy();
        migrate(client);
        bind(database, binding);
      })
      .immediate();
    upgrade?.dropOldCopies();
    return database;
  } catch (error) {
    client.close();
    throw error;
  }
}

function missing(file: string, { environment }: Binding): string {
  const make = environment === 'sandbox' ? 'run artseal init or start artseal serve' : 'run artseal init';
  return `there is no database in ${dirname(file)}: ${make}, or set ARTSEAL_DATA_DIR to the folder of one.`;
}

function alreadyThere(file: string): DatabaseError {
  return new DatabaseError(
    `${file} is there already: use it as it is, or set ARTSEAL_DATA_DIR to another folder.`,
  );
}

/** Throws if a database is bound to another environment or currency. */
function checkBinding(client: Sqlite.Database, binding: Binding): void {
  const bound = client.prepare<[], Binding>('SELECT environment, currency FROM deployment').get();
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
  if (currency !== binding.currency) {
    reject(`deployment in ${currency} and cannot open in ${binding.currency}`, 'ARTSEAL_CURRENCY');
  }
}

/** Binds a new database, and gives it its secret. */
function bind(database: SqliteDatabase, binding: Binding): void {
  if (database.select().from(deployment).get() !== undefined) return;
  database
    .insert(deployment)
    .values({ id: 1, ...binding, secret: randomBytes(32) })
    .run();
}

/** Opens the database, and checks it if the last process that used it did not close it. */
export function openChecked(options: StoreOptions) {
  let checkedMs: number | undefined;
  let fromSchema: number | undefined;
  const opened = openDatabase(options, {}, (client, isCutOff) => {
    fromSchema = schemaOf(client);
    if (isCutOff) checkedMs = rejectDamaged(client);
  });
  const toSchema = schemaOf(opened.database.$client);
  const upgrade: SchemaUpgrade | undefined =
    fromSchema === undefined || fromSchema === toSchema ? undefined : { fromSchema, toSchema };
  return { ...opened, checkedMs, upgrade };
}

/** Damages that a message lists, at most. */
const damagesMax = 3;

/**
 * Whether the last process that used a database did not close it, as after kill -9 or a power failure. SQLite removes the log when
 * it closes a database.
 */
function wasCutOff({ dataDir, openMark }: StoreOptions): boolean {
  const log = statSync(`${databaseFile(dataDir)}-wal`, { throwIfNoEntry: false });
  if (log !== undefined && log.size > 0) return true;
  return openMark !== undefined && existsSync(join(dataDir, openMark));
}

/** The faults that SQLite finds in a database, at most `max`. */
export function faultsBySqlite(
  client: Sqlite.Database,
  pragma: 'quick_check' | 'integrity_check',
  max: number,
): string[] {
  const found = client.prepare<[], string>(`PRAGMA ${pragma}(${max})`).pluck().all();
  return found.filter((text) => text !== 'ok');
}

/** The faults that SQLite finds in a database, in its own words. Reads the whole file. */
export function damagesOf(client: Sqlite.Database): readonly string[] {
  const found = faultsBySqlite(client, 'quick_check', damagesMax);
  const lines = found.flatMap((text) => text.split('\n')).filter((line) => !line.startsWith('***'));
  return lines.slice(0, damagesMax);
}

/** Reads a whole database and its log. Returns how long that took, in milliseconds. Throws DatabaseError if it is damaged. */
function rejectDamaged(client: Sqlite.Database): number {
  const taken = createDistribution(durationBoundsS);
  const damages = taken.time(() => damagesOf(client));
  if (damages.length > 0) throw damaged(client.name, damages.join('; '));
  return Math.round(taken.data().sum * 1_000);
}

/** The error of a database that SQLite finds damaged. */
export function damaged(file: string, what: string): DatabaseError {
  return new DatabaseError(
    `${file} is damaged: ${what}. Change nothing in its folder, and restore the last backup: artseal restore, ` +
      'as docs/operate/incidents/database-damaged.md says.',
  );
}

/** What a database is. */
export function deploymentOf(database: SqliteDatabase): InferSelectModel<typeof deployment> {
  const row = database.select().from(deployment).get();
  if (row === undefined) throw new Error('The database has no deployment row.');
  return row;
}
