import type pg from 'pg';
import { DatabaseError } from '../engine/failure.ts';

/**
 * That a database is or was moved, from or to a data folder:
 * - MOVING: it is the database of the folder, unless that has one of its own.
 * - MOVED: the folder has it now.
 */
export interface MoveStamp {
  readonly state: 'MOVING' | 'MOVED';
  /** As in the move record of the folder. */
  readonly folderId: string;
  readonly folder: string;
}

// In a comment, which is written in the transaction that makes the tables and needs no table of its own.

/** Reads the stamp of a database that has tables; undefined if it has none. */
export async function readStamp(client: Pick<pg.Client, 'query'>): Promise<MoveStamp | undefined> {
  const { rows } = await client.query<{ stamp: string | null }>(
    "SELECT obj_description(to_regclass('schema_version'), 'pg_class') AS stamp",
  );
  const text = rows[0]?.stamp ?? undefined;
  return text === undefined ? undefined : JSON.parse(text);
}

/** Writes the stamp; undefined removes it. */
export async function writeStamp(client: pg.Client, stamp: MoveStamp | undefined): Promise<void> {
  const text = stamp === undefined ? 'NULL' : client.escapeLiteral(JSON.stringify(stamp));
  await client.query(`COMMENT ON TABLE schema_version IS ${text}`);
}

/** Throws DatabaseError if a database is or was moved. */
export async function refuseMoved(client: pg.Client): Promise<void> {
  const stamp = await readStamp(client);
  if (stamp?.state === 'MOVED')
    throw new DatabaseError(
      `the database was moved to ${stamp.folder}: unset ARTSEAL_DATABASE_URL, and set ARTSEAL_DATA_DIR to that folder.`,
    );
  if (stamp !== undefined)
    throw new DatabaseError(
      `a move between the database and ${stamp.folder} has not ended: run the same artseal move again.`,
    );
}
