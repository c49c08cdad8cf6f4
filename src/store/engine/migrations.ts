import { readPackaged } from '../../packaging/packaged-files.ts';
import type { oldestVersion } from './schema.ts';

/** A step from one schema to the next, which runs once in each database. */
export interface Migration {
  /** The name of its file: `0000_initial`. */
  readonly name: string;
  readonly sql: string;
}

/** Reads the migrations of an engine. Each has a file for both engines, so that the number of a schema says the same on both. */
export function readMigrations(engine: 'sqlite' | 'postgres'): Migration[] {
  const journal: { readonly entries: readonly { readonly tag: string }[] } = JSON.parse(
    readPackaged('src/store/sqlite/migrations/meta/_journal.json').toString(),
  );
  return journal.entries.map(({ tag: name }) => ({
    name,
    sql: readPackaged(`src/store/${engine}/migrations/${name}.sql`).toString(),
  }));
}

/**
 * Why this version must not use a database that a newer one has upgraded to `schema`; undefined if it may. Migrations leave the
 * database usable by the version before, so `oldest_version` decides, not the schema.
 */
export function whyTooNew(
  name: string,
  schema: number,
  known: number,
  oldest: typeof oldestVersion.$inferSelect | undefined,
): string | undefined {
  if (oldest === undefined) throw new Error('The database has no oldest version.');
  if (Number(oldest.schema) <= known) return undefined;
  return `${name} needs artseal ${oldest.version} or later: it has schema ${schema}, and this version knows ${known}`;
}
