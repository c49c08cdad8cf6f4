import { existsSync, linkSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import Sqlite from 'better-sqlite3';
import { syncFolder } from '../../lib/replace-file.ts';
import { databaseBytes, freeBytes, makePrivateFile, megabytes, syncFile } from './durable-files.ts';
import { DatabaseError, databaseFile, withSqliteFiles } from './location.ts';
import { migrationNames, schemaOf } from './migrations.ts';
import { takeServingLock } from './serving-lock.ts';
import { copiesOf, copyBefore, leftOf } from './upgrade.ts';

/** The result of a downgrade. */
export interface Downgraded {
  readonly database: string;
  readonly schema: number;
  /** The file of the database as the newer version left it. */
  readonly left: string;
  /** Filings made since the upgrade; the downgraded database has them as well. */
  readonly filings: number;
}

/**
 * How each migration after the first is taken back. A step converts the rows and loses none: everything that was published of
 * the evidence log must be in the downgraded database.
 */
const steps: Readonly<Record<string, (client: Sqlite.Database) => void>> = {
  '0001_append_only': dropTriggers,
};

/** Free bytes that a downgrade needs, as a multiple of the database: the draft, and as much again while it is written. */
const roomFactor = 2;

/**
 * Converts the database in a folder to the schema that it had before the last upgrade, and loses nothing. Keeps the database
 * of the newer version beside it. Throws DatabaseError if the database is served or changed meanwhile, if there is no copy
 * of an upgrade, if there is no room, or if a file of an earlier downgrade is in the way.
 */
export function downgrade(dataDir: string): Downgraded {
  const database = databaseFile(dataDir);
  const folder = dirname(database);
  if (!existsSync(database)) throw new DatabaseError(`there is no database in ${folder}.`);
  const lock = takeServingLock(dataDir);
  const draft = `${database}.back`;
  try {
    const newer = withClient(database, schemaOf);
    const copy = copiesOf(database).find(({ schema }) => schema < newer);
    if (copy === undefined)
      throw new DatabaseError(
        `there is no copy of an earlier version beside ${database}, as an upgrade makes it (${copyBefore(database, newer - 1)}).`,
      );
    const left = leftOf(database, newer);
    if (existsSync(left))
      throw new DatabaseError(`${left} is there from an earlier downgrade: move it elsewhere first.`);
    rejectOpened(database);
    const before = versionOf(database);
    removeDatabase(draft);
    rejectWithoutRoom(database);
    const filingsBefore = filingsIn(copy.file);
    makePrivateFile(draft);
    // One file without a log, unlike a copy of the file: what is renamed must be the whole database.
    withClient(database, (client) => client.prepare('VACUUM INTO ?').run(draft));
    takeBack(draft, copy.schema);
    const filings = filingsIn(draft) - filingsBefore;
    syncFile(draft);
    rejectOpened(database);
    if (versionOf(database) !== before)
      throw new DatabaseError(`another process changed ${database} meanwhile: run this again.`);
    // At each moment one of the two is there under the name of the database.
    linkSync(database, left);
    renameSync(draft, database);
    syncFolder(folder);
    return { database, schema: copy.schema, left, filings };
  } finally {
    removeDatabase(draft);
    lock.release();
  }
}

/** Takes the migrations after a schema back, in one transaction. */
export function takeBack(file: string, schema: number): void {
  withClient(file, (client) =>
    client.transaction(() => {
      for (const name of migrationNames().slice(schema).toReversed()) {
        const step = steps[name];
        if (step === undefined) throw new Error(`No step takes ${name} back.`);
        step(client);
      }
      client.pragma(`user_version = ${schema}`);
    })(),
  );
}

function dropTriggers(client: Sqlite.Database): void {
  const triggers = client
    .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
    .pluck()
    .all();
  for (const name of triggers) client.exec(`DROP TRIGGER ${name}`);
}

/** Removes a database with the files that SQLite keeps beside it, which SQLite would apply to the next one of that name. */
function removeDatabase(file: string): void {
  for (const name of withSqliteFiles(file)) rmSync(name, { force: true });
}

function rejectWithoutRoom(database: string): void {
  const [needed, free] = [roomFactor * databaseBytes(database), freeBytes(dirname(database))];
  if (free < needed)
    throw new DatabaseError(
      `the downgrade needs ${megabytes(needed)} free beside ${database}, and ${megabytes(free)} are: make room first.`,
    );
}

/** Changes with every write to a database whose log is empty. */
function versionOf(database: string): string {
  const { mtimeNs, size } = statSync(database, { bigint: true });
  return `${mtimeNs} ${size}`;
}

/** The last connection of all processes removes the log. */
function rejectOpened(database: string): void {
  if (existsSync(`${database}-wal`))
    throw new DatabaseError(`another process has ${database} open: wait until it has ended.`);
}

function filingsIn(file: string): number {
  try {
    return withClient(file, (client) => client.prepare<[], number>(countFilings).pluck().get() ?? 0);
  } catch (error) {
    throw new DatabaseError(`${file} cannot be read: ${(error as Error).message}.`, { cause: error });
  }
}

const countFilings = 'SELECT count(*) FROM filing';

/** Not read-only: only a connection that may write removes the log when it is closed. */
function withClient<T>(file: string, work: (client: Sqlite.Database) => T): T {
  const client = new Sqlite(file, { fileMustExist: true });
  try {
    return work(client);
  } finally {
    client.close();
  }
}
