import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { syncFolder } from '../../lib/replace-file.ts';
import { DatabaseError } from '../engine/failure.ts';
import { type Migration, readMigrations, whyTooNew } from '../engine/migrations.ts';
import type { oldestVersion } from '../engine/schema.ts';
import { databaseBytes, freeBytes, makePrivateFile, megabytes, syncFile } from './durable-files.ts';
import { isInUse } from './folder-lock.ts';
import { cannotUse, databaseFile } from './location.ts';
import { readDatabase } from './reading.ts';

/** The migrations that this version knows, in their order. Only tests change the list. */
export const migrations = readMigrations('sqlite');

/** The schema of a database: the number of its migrations; 0 for an empty file. */
export function schemaOf(client: Sqlite.Database): number {
  return Number(client.pragma('user_version', { simple: true }));
}

/** As `whyTooNew`. */
export function tooNew(client: Sqlite.Database, name: string = client.name): string | undefined {
  const schema = schemaOf(client);
  if (schema <= migrations.length) return undefined;
  const oldest = client.prepare<[], typeof oldestVersion.$inferSelect>('SELECT * FROM oldest_version').get();
  return whyTooNew(name, schema, migrations.length, oldest);
}

/** The migrations that a database lacks. Throws DatabaseError if it is too new for this version. */
function migrationsFor(client: Sqlite.Database): readonly Migration[] {
  const why = tooNew(client);
  if (why !== undefined) throw new DatabaseError(`${why}.`);
  return migrations.slice(schemaOf(client));
}

/** Applies the missing migrations. The caller begins the transaction. */
export function migrate(client: Sqlite.Database): void {
  const due = migrationsFor(client);
  if (due.length === 0) return;
  for (const { sql } of due) client.exec(sql);
  client.pragma(`user_version = ${schemaOf(client) + due.length}`);
}

/** How a database is upgraded to the schema of this version. */
export interface UpgradeRules {
  /** Whether a copy is made before; true by default. */
  readonly keepsCopy: boolean;
}

/** The copies of the last two upgrades are kept. */
const copiesKept = 2;
/** Free bytes that an upgrade needs, as a multiple of the database: the copy, and as much for the log of the migration. */
const roomFactor = 2;
/** How fast a database is copied and its log written, for the estimate. */
const bytesPerS = 100e6;

const copyPattern = /^(.+)\.schema-(\d+)\.backup$/;

/** The file of the copy that is made before a database is upgraded from a schema. */
export function copyBefore(database: string, schema: number): string {
  return `${database}.schema-${schema}.backup`;
}

/** A copy of a database, made before an upgrade. */
interface UpgradeCopy {
  readonly file: string;
  readonly schema: number;
}

/** The copies beside a database, the one of the highest schema first. */
export function copiesOf(database: string): readonly UpgradeCopy[] {
  const copies = readdirSync(dirname(database)).flatMap((name) => {
    const [, of, schema] = copyPattern.exec(name) ?? [];
    return of === basename(database) ? [{ file: join(dirname(database), name), schema: Number(schema) }] : [];
  });
  return copies.sort((one, other) => other.schema - one.schema);
}

/** Plans the upgrade of the database in a folder, and changes nothing. Throws DatabaseError. */
export function planUpgrade(dataDir: string) {
  const database = databaseFile(dataDir);
  if (!existsSync(database)) throw new DatabaseError(`there is no database in ${dirname(database)}.`);
  try {
    return readDatabase(database, (client) => planOf(client, dataDir));
  } catch (error) {
    throw error instanceof Sqlite.SqliteError ? cannotUse(database, error) : error;
  }
}

function planOf(client: Sqlite.Database, dataDir: string) {
  const database = client.name;
  const due = migrationsFor(client);
  const schema = schemaOf(client);
  const neededBytes = due.length === 0 ? 0 : roomFor(database);
  return {
    database,
    schema,
    /** Its schema afterwards. */
    newSchema: schema + due.length,
    migrations: due.map(({ name }) => name),
    /** The file of the copy that is made before. */
    copy: copyBefore(database, schema),
    neededBytes,
    freeBytes: freeBytes(dirname(database)),
    /** A rough estimate for an ordinary machine, in seconds. */
    estimatedS: Math.ceil(neededBytes / bytesPerS),
    /** Whether a process uses it. That process must be stopped before. */
    isInUse: isInUse(dataDir),
  };
}

/** Free bytes that the copy and the migration of a database need. */
const roomFor = (database: string): number => databaseBytes(database) * roomFactor;

/** Begins the upgrade of an open database. Returns the steps around the migration; undefined if none is due. Throws DatabaseError. */
export function beginUpgrade(client: Sqlite.Database, { keepsCopy = true }: Partial<UpgradeRules>) {
  const database = client.name;
  const schema = schemaOf(client);
  if (schema === 0 || migrationsFor(client).length === 0) return undefined;
  return {
    /** Makes the copy. */
    keepCopy: () => {
      if (keepsCopy) makeCopy(client, schema);
    },
    /** Removes the copies of older upgrades; all of them if this upgrade makes none. */
    dropOldCopies: () => {
      const copies = copiesOf(database);
      // A copy of a later schema is from before an operator put an older one in place of the database.
      const earlier = copies.filter((copy) => copy.schema <= schema);
      const kept = keepsCopy ? earlier.slice(0, copiesKept) : [];
      for (const copy of copies) if (!kept.includes(copy)) rmSync(copy.file);
    },
  };
}

/** Copies a database that no process writes to meanwhile. The copy gets its name once it is whole and on disk. */
function makeCopy(client: Sqlite.Database, schema: number): void {
  const database = client.name;
  const folder = dirname(database);
  const copy = copyBefore(database, schema);
  const draft = `${copy}.new`;
  rmSync(draft, { force: true });
  rejectWithoutRoom(database, roomFor(database), freeBytes(folder));
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
export function rejectWithoutRoom(database: string, needed: number, free: number): void {
  if (free >= needed) return;
  throw new DatabaseError(
    `the upgrade of ${database} needs ${megabytes(needed)} free beside it for a copy and its log, and ` +
      `${megabytes(free)} are: make room; or run artseal backup to another disk, then artseal upgrade --without-copy.`,
  );
}
