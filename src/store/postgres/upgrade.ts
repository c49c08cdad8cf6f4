import { readPackaged } from '../../packaging/packaged-files.ts';
import { DatabaseError } from '../engine/failure.ts';
import type { oldestVersion } from '../engine/schema.ts';

const folder = 'src/store/postgres/migrations';

/** A step from one schema to the next, which runs once in each database. */
export interface Migration {
  /** The name of its file: `0000_initial`. */
  readonly name: string;
  readonly sql: string;
}

/** The migrations that this version knows, in their order. Only tests change the list. */
export const migrations: Migration[] = ['0000_initial'].map((name) => ({
  name,
  sql: readPackaged(`${folder}/${name}.sql`).toString(),
}));

/** A session with a database. */
export interface Session {
  query<Row>(text: string): Promise<{ readonly rows: Row[] }>;
}

/** The schema of a database: the number of its migrations; 0 for one without tables. */
export async function schemaOf(session: Session): Promise<number> {
  const exists = await one<{ is: boolean }>(
    session,
    "SELECT to_regclass('schema_version') IS NOT NULL AS is",
  );
  if (!exists.is) return 0;
  const { version } = await one<{ version: unknown }>(session, 'SELECT version FROM schema_version');
  return Number(version);
}

/**
 * Why this version must not use a database that a newer one has upgraded; undefined if it may. Migrations
 * leave the database usable by the version before, so `oldest_version` decides, not the schema.
 */
export async function tooNew(session: Session): Promise<string | undefined> {
  const [schema, known] = [await schemaOf(session), migrations.length];
  if (schema <= known) return undefined;
  const oldest = await one<typeof oldestVersion.$inferSelect & { name: string }>(
    session,
    'SELECT *, current_database() AS name FROM oldest_version',
  );
  if (Number(oldest.schema) <= known) return undefined;
  return `the database ${oldest.name} needs artseal ${oldest.version} or later: it has schema ${schema}, and this version knows ${known}`;
}

/** Throws DatabaseError if the tables of a database are older or too new for this version. */
export async function refuseOtherSchema(session: Session): Promise<void> {
  const [schema, known] = [await schemaOf(session), migrations.length];
  if (schema < known)
    throw new DatabaseError(
      `the database has schema ${schema}, and this version needs ${known}: run artseal upgrade.`,
    );
  const why = await tooNew(session);
  if (why !== undefined) throw new DatabaseError(`${why}.`);
}

/**
 * Applies the missing migrations, all in one transaction. A process that does the same at that time waits, and
 * then has nothing to do. Throws DatabaseError if the database is too new for this version.
 */
export async function migrate(session: Session): Promise<void> {
  // A stricter isolation would show the tables as they were before the lock was free.
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await session.query("SELECT pg_advisory_xact_lock(hashtextextended('artseal migrations', 0))");
    await applyMissing(session);
    await session.query('COMMIT');
  } catch (error) {
    // The error above says more than that the connection was lost.
    await session.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** The same in a transaction of the caller. */
export async function applyMissing(session: Session): Promise<void> {
  const why = await tooNew(session);
  if (why !== undefined) throw new DatabaseError(`${why}.`);
  const due = migrations.slice(await schemaOf(session));
  if (due.length === 0) return;
  for (const { sql } of due) await session.query(sql);
  await session.query(`UPDATE schema_version SET version = ${migrations.length}`);
}

/** The only row of a query. */
async function one<Row>(session: Session, text: string): Promise<Row> {
  const [row] = (await session.query<Row>(text)).rows;
  if (row === undefined) throw new Error(`There is no row: ${text}`);
  return row;
}
