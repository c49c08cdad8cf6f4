import { setTimeout as delay } from 'node:timers/promises';
import { DatabaseError } from '../engine/failure.ts';
import { readMigrations, whyTooNew } from '../engine/migrations.ts';
import type { oldestVersion } from '../engine/schema.ts';
import { goneAfterS } from '../instance-commands.ts';
import { isRepeatable } from './postgres-errors.ts';

/** The migrations that this version knows, in their order. Only tests change the list. */
export const migrations = readMigrations('postgres');

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

/** As `whyTooNew`. */
export async function tooNew(session: Session): Promise<string | undefined> {
  const schema = await schemaOf(session);
  if (schema <= migrations.length) return undefined;
  const { name, ...oldest } = await one<typeof oldestVersion.$inferSelect & { name: string }>(
    session,
    'SELECT *, current_database() AS name FROM oldest_version',
  );
  return whyTooNew(`the database ${name}`, schema, migrations.length, oldest);
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
 * How a migration waits for other transactions. All calls of instances queue after it, so each try gives up soon, and before
 * PostgreSQL looks for a deadlock. Only tests change it.
 */
export const waiting = { lockTimeoutMs: 500, pauseMs: 1_000, tries: 40 };

/**
 * Applies the missing migrations, all in one transaction, beside instances that serve. A process that does the same at that time
 * waits, and then has nothing to do. Throws DatabaseError if the database is too new for this version, if an instance that serves
 * could not use it afterwards, or if others use the tables for too long.
 */
export async function migrate(session: Session): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await migrateOnce(session);
    } catch (error) {
      if (!isRepeatable(error)) throw error;
      if (tries === waiting.tries)
        throw new DatabaseError(
          'the upgrade waited in vain for a transaction that uses the tables, such as pg_dump: end it, or wait until it ends, and ' +
            'run artseal upgrade again.',
        );
      await delay(waiting.pauseMs);
    }
  }
}

async function migrateOnce(session: Session): Promise<void> {
  // A stricter isolation would show the tables as they were before the lock was free.
  await session.query('BEGIN ISOLATION LEVEL READ COMMITTED');
  try {
    await session.query(`SET LOCAL lock_timeout = ${waiting.lockTimeoutMs}`);
    // No transaction of an instance is open until this one ends.
    await session.query("SELECT pg_advisory_xact_lock(hashtextextended('artseal migrations', 0))");
    await applyMissing(session);
    await refuseOldInstances(session);
    await session.query('COMMIT');
  } catch (error) {
    // The error above says more than that the connection was lost.
    await session.query('ROLLBACK').catch(() => {});
    throw error;
  }
}

/** Throws DatabaseError if the applied migrations need a later version than that of an instance that serves. */
async function refuseOldInstances(session: Session): Promise<void> {
  const { rows } = await session.query<Record<'where' | 'version' | 'oldest', string>>(
    `SELECT format('%s (process %s)', facts ->> 'host', facts ->> 'processId') AS "where", facts ->> 'version' AS version,
        oldest_version.version AS oldest
      FROM instance JOIN oldest_version ON instance.schema < oldest_version.schema
      WHERE seen_at > clock_timestamp() - interval '${goneAfterS} s' ORDER BY joined_at LIMIT 1`,
  );
  const [old] = rows;
  if (old === undefined) return;
  throw new DatabaseError(
    `the upgraded database needs artseal ${old.oldest} or later, and artseal ${old.version} serves it on ${old.where}: ` +
      `stop it, or upgrade all instances to ${old.oldest} first.`,
  );
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
