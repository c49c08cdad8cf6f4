import { createHash } from 'node:crypto';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { deployment as deploymentRow } from '../src/store/engine/schema.ts';
import { openDatabase } from '../src/store/sqlite/database.ts';
import { createSqliteStore } from '../src/store/sqlite/engine.ts';
import type { Store } from '../src/store/store.ts';
import type { Assembly } from './assembly.ts';
import type { Dice } from './dice.ts';
import { type Around, watchStatements } from './statements.ts';
import { deployment } from './world.ts';

/** A value that SQLite has at once, and PostgreSQL later. */
export type Eventual<T> = T | Promise<T>;

/** Passes a value on, at once if it is there. */
export function whenThere<T, R>(value: Eventual<T>, next: (value: T) => Eventual<R>): Eventual<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** The engine that keeps the records of the service. */
export interface Engine {
  /** Creates the database. The dice determine its secret, and so the escrow ids. */
  prepare(folder: string, dice: Dice): Promise<void>;
  /** Whether no session that was lost can change the records any more. */
  isReleased(): boolean;
  /** Opens the store of an instance in its folder. */
  open(folder: string): Eventual<Opened>;
  /** Reads the records, which may be in use. */
  read<T>(folder: string, read: (client: Sqlite.Database) => T): Eventual<T>;
  /** Whether it works in real time, so that the clock of the simulation has to wait for it. */
  readonly isInRealTime: boolean;
  /** A digest of all records; undefined if they cannot be read at once. */
  contents(folder: string): string | undefined;
}

/** Where in a transaction a fault occurs. */
export type Place = 'in a batch' | 'before a commit' | 'after a commit';

/** A fault in a transaction before its commit. */
export interface Strike {
  /** How many statements of the transaction run before the fault. If there are fewer, the fault is at the commit. */
  readonly statements: number;
  /** Kills the instance, or fails the transaction. */
  befall(place: Place): void;
}

/** Is called for each write transaction. */
export interface Watch {
  /** Returns its fault, or undefined if there is none. */
  begun(): Strike | undefined;
  committed(): void;
}

/** The store of an instance. */
export interface Opened {
  /** Starts the store. Call it once. */
  start(watch: Watch): Store;
  /** Fails the current transaction: throws the error of a disk, or loses the connection of the store. */
  fail(place: Place): void;
  /** Keeps the store of a killed instance from changing the records. */
  cut(): void;
  /** Releases what is left when the store is closed. */
  end(): void;
}

/** SQLite in the thread of the simulation. */
export function sqliteEngine({ openCore }: Pick<Assembly, 'openCore'>): Engine {
  const optionsOf = (dataDir: string) => ({ ...deployment, dataDir, opening: 'EXISTING' }) as const;
  return {
    isInRealTime: false,
    prepare: async (dataDir, dice) => {
      const { database, close } = openDatabase({ ...optionsOf(dataDir), opening: 'NEW' });
      database
        .update(deploymentRow)
        .set({ secret: secretOf(dice) })
        .run();
      close();
    },
    isReleased: () => true,
    open: (folder) => {
      let stopWatching = () => {};
      return {
        start: (watch) => {
          stopWatching = watchStatements(folder, createStatementWatch(watch));
          const options = optionsOf(folder);
          return createSqliteStore(options, openCore(options));
        },
        fail: failDisk,
        // It has a folder of its own.
        cut: () => {},
        end: () => stopWatching(),
      };
    },
    read: withDatabase,
    contents: (folder) => withDatabase(folder, contentsOf),
  };
}

function failDisk(place: Place): never {
  if (place === 'in a batch') throw new Sqlite.SqliteError('disk I/O error', 'SQLITE_IOERR');
  throw new Sqlite.SqliteError('database or disk is full', 'SQLITE_FULL');
}

/** Follows the write transactions of a store: the fault of one occurs after some of its statements, or at its commit. */
export function followTransactions(on: Watch) {
  let isWriting = false;
  let strike: Strike | undefined;
  let statements = 0;
  return {
    isWriting: () => isWriting,
    begin: (): void => {
      isWriting = true;
      strike = on.begun();
      statements = 0;
    },
    /** Is called before each statement. */
    next: (isCommit: boolean): void => {
      statements += 1;
      if (strike === undefined || !(isCommit || statements > strike.statements)) return;
      const { befall } = strike;
      strike = undefined;
      isWriting = false;
      befall(isCommit ? 'before a commit' : 'in a batch');
    },
    committed: (): void => {
      if (isWriting) on.committed();
      isWriting = false;
    },
  };
}

/** Watches the statements of write transactions. */
function createStatementWatch(on: Watch): Around {
  const { begin, next, committed } = followTransactions(on);
  return ({ source }, run) => {
    if (source === 'BEGIN IMMEDIATE') begin();
    next(source === 'COMMIT');
    const result = run();
    if (source === 'COMMIT') committed();
    return result;
  };
}

/** Draws the secret of a database. */
export const secretOf = (dice: Dice): Buffer =>
  Buffer.from(Array.from({ length: 32 }, () => dice.below(256)));

/** A digest of all rows. */
function contentsOf(client: Sqlite.Database): string {
  const sum = createHash('sha256');
  const tables = client.prepare<[], string>(
    `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`,
  );
  for (const table of tables.pluck().all()) {
    sum.update(JSON.stringify([table, client.prepare(`SELECT * FROM "${table}"`).raw().all()]));
  }
  return sum.digest('hex');
}

function withDatabase<T>(folder: string, read: (client: Sqlite.Database) => T): T {
  const client = new Sqlite(join(folder, 'artseal.db'), { readonly: true });
  try {
    return read(client);
  } finally {
    client.close();
  }
}
