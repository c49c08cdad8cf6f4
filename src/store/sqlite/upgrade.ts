import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { SchemaUpgrade } from '../store.ts';
import {
  databaseBytes,
  freeBytes,
  makePrivateFile,
  megabytes,
  syncFile,
  syncFolder,
} from './durable-files.ts';
import { cannotUse, DatabaseError, databaseFile } from './location.ts';
import { logSchema, migrationNames, migrationsFor, schemaOf } from './migrations.ts';
import { isServed, tryServingLock } from './serving-lock.ts';

/** How a database may be brought to the schema of this version. */
export interface UpgradeRules {
  /** Whether the caller has the serving lock already. */
  readonly isBehindLock: boolean;
  /** Whether a copy is made before, which is the way back. */
  readonly keepsCopy: boolean;
  /** Is called once the database has been upgraded. */
  readonly onUpgrade: (upgrade: SchemaUpgrade) => void;
}

/** What goes with the migration of a database, which happens between these. Disposing of it lets go of the lock. */
export interface Upgrade extends Disposable {
  /** Makes the copy. Inside the transaction that migrates, so that no process writes what the copy lacks. */
  keepCopy(): void;
  /** Removes all copies but those of the last upgrades; all, where this one keeps none. */
  dropOldCopies(): void;
}

/** What would happen to a database. */
export interface UpgradePlan {
  readonly database: string;
  readonly schema: number;
  /** The schema of this version. */
  readonly newSchema: number;
  readonly migrations: readonly string[];
  /** Where the copy is put that is made before. */
  readonly copy: string;
  readonly neededBytes: number;
  readonly freeBytes: number;
  /** How long it takes on an ordinary machine, in seconds, very roughly. */
  readonly estimatedS: number;
  /** Whether a process serves it, which has to be stopped before. */
  readonly isServed: boolean;
}

/** Copies that are kept: of the last two upgrades. */
const copiesKept = 2;
/** The copy, and as much for the log of the migration. */
const roomFactor = 2;
/** Of copying and of writing the log, for the estimate. */
const bytesPerS = 100e6;
/** What migrations that touch every row take for each, in microseconds, by the schema that they lead to. */
const rowCosts = [
  { schema: 9, table: 'filing', us: 8 },
  { schema: 10, table: 'filing', us: 12 },
  { schema: 12, table: 'escrow', us: 3 },
  { schema: logSchema, table: 'filing', us: 20 },
  { schema: logSchema, table: 'provenance_record', us: 20 },
  { schema: 19, table: 'filing', us: 1 },
] as const;
/** Bytes of a leaf in the evidence log, with those of its salt beside the record. */
const leafBytes = 320;

const formerPattern = /^(.+)\.schema-(\d+)\.(backup|left)$/;

/** The copy of a database that is made before it leaves a schema. */
export function copyBefore(database: string, schema: number): string {
  return `${database}.schema-${schema}.backup`;
}

/** Where the database of a schema is kept that was gone back from. */
export function leftOf(database: string, schema: number): string {
  return `${database}.schema-${schema}.left`;
}

/** A file beside a database that has what it had in a schema. */
export interface Former {
  readonly file: string;
  readonly schema: number;
  /** A copy that was made before the database left the schema, or the database that was gone back from. */
  readonly kind: 'backup' | 'left';
}

/** All such files of a database. */
export function formersOf(database: string): readonly Former[] {
  return readdirSync(dirname(database)).flatMap((name) => {
    const [, of, schema, kind] = formerPattern.exec(name) ?? [];
    return of === basename(database)
      ? [{ file: join(dirname(database), name), schema: Number(schema), kind: kind as Former['kind'] }]
      : [];
  });
}

/** The copies beside a database, the one of the highest schema first. */
export function copiesOf(database: string): readonly Former[] {
  return formersOf(database)
    .filter(({ kind }) => kind === 'backup')
    .sort((one, other) => other.schema - one.schema);
}

/** Says what an upgrade of the database in a folder would do; nothing is changed. Throws DatabaseError. */
export function planUpgrade(dataDir: string): UpgradePlan {
  const database = databaseFile(dataDir);
  if (!existsSync(database)) throw new DatabaseError(`there is no database in ${dirname(database)}.`);
  const client = new Sqlite(database, { fileMustExist: true });
  try {
    client.pragma('query_only = ON');
    const due = migrationsFor(client);
    const schema = schemaOf(client);
    const neededBytes = due.length === 0 ? 0 : roomFor(client);
    return {
      database,
      schema,
      newSchema: migrationNames().length,
      migrations: due,
      copy: copyBefore(database, schema),
      neededBytes,
      freeBytes: freeBytes(dirname(database)),
      estimatedS: Math.ceil(neededBytes / bytesPerS + rowSeconds(client, schema, due)),
      isServed: isServed(dataDir),
    };
  } catch (error) {
    throw error instanceof Sqlite.SqliteError ? cannotUse(database, error) : error;
  } finally {
    client.close();
  }
}

/** What the copy and the migration of a database need. */
function roomFor(client: Sqlite.Database): number {
  const growth = growthOf(schemaOf(client), rowsIn(client, 'filing'));
  return databaseBytes(client.name) * roomFactor + growth;
}

/** What a database from before a schema with so many filings grows by, its write-ahead log included, besides being rewritten. */
export function growthOf(schema: number, filings: number): number {
  return schema < logSchema ? 2 * filings * leafBytes : 0;
}

const rowsIn = (client: Sqlite.Database, table: string): number =>
  client.prepare<[], number>(`SELECT count(*) FROM ${table}`).pluck().get() ?? 0;

function rowSeconds(client: Sqlite.Database, schema: number, due: readonly string[]): number {
  const costs = rowCosts.filter((cost) => cost.schema > schema && cost.schema <= schema + due.length);
  const micros = costs.map(({ table, us }) => rowsIn(client, table) * us);
  return micros.reduce((sum, each) => sum + each, 0) / 1e6;
}

/**
 * Begins the upgrade of an open database: takes the serving lock, unless nothing is to be migrated. Throws DatabaseError
 * if another process serves it, or if there is no room.
 */
export function beginUpgrade(
  client: Sqlite.Database,
  { isBehindLock = false, keepsCopy = true }: Partial<UpgradeRules>,
): Upgrade {
  const database = client.name;
  const schema = schemaOf(client);
  if (schema === 0 || migrationsFor(client).length === 0) return nothingToDo;
  const lock = isBehindLock ? undefined : tryServingLock(dirname(database));
  if (!isBehindLock && lock === undefined) {
    throw new DatabaseError(
      `${database} is of an older version (schema ${schema}), and another artseal serves it: ` +
        'use the commands of that version, or stop it, run artseal upgrade, and start this version.',
    );
  }
  return {
    keepCopy: () => {
      // Another process may have been faster.
      if (keepsCopy && schemaOf(client) === schema) makeCopy(client, schema);
    },
    dropOldCopies: () => {
      const copies = copiesOf(database);
      // A copy of a later schema is left from before it was brought back: going back would take that, not the last one.
      const later = copies.filter((copy) => copy.schema > schema);
      // Without a copy of its own, going back would skip this upgrade, and take what is older still.
      const ofLastUpgrades = keepsCopy ? copies.slice(later.length, later.length + copiesKept) : [];
      for (const copy of copies) if (!ofLastUpgrades.includes(copy)) rmSync(copy.file);
    },
    [Symbol.dispose]: () => lock?.release(),
  };
}

const nothingToDo: Upgrade = {
  keepCopy: () => {},
  dropOldCopies: () => {},
  [Symbol.dispose]: () => {},
};

/** Makes the copy of a database that nobody writes to meanwhile: there under its name once it is whole and on disk. */
function makeCopy(client: Sqlite.Database, schema: number): void {
  const database = client.name;
  const folder = dirname(database);
  const copy = copyBefore(database, schema);
  const draft = `${copy}.new`;
  rmSync(draft, { force: true });
  refuseWithoutRoom(database, roomFor(client), freeBytes(folder));
  makePrivateFile(draft);
  // A connection of its own, since the one that migrates is inside its transaction.
  const reader = new Sqlite(database, { readonly: true });
  try {
    reader.prepare('VACUUM INTO ?').run(draft);
    syncFile(draft);
    renameSync(draft, copy);
    syncFolder(folder);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  } finally {
    reader.close();
  }
}

/** Throws DatabaseError if less is free than the copy and the migration need. */
export function refuseWithoutRoom(database: string, needed: number, free: number): void {
  if (free >= needed) return;
  throw new DatabaseError(
    `the upgrade of ${database} needs ${megabytes(needed)} free beside it for a copy and its log, and ` +
      `${megabytes(free)} are: make room; or run artseal backup to another disk, then artseal upgrade --without-copy.`,
  );
}
