import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseError } from '../engine/failure.ts';
import { connectToUse } from '../postgres/line.ts';
import { type MoveStamp, readStamp, refuseMoved, writeStamp } from '../postgres/move-stamp.ts';
import { continueIds, createPortable } from '../postgres/portable.ts';
import { applyMissing, refuseOtherSchema, schemaOf } from '../postgres/upgrade.ts';
import { lockFolder } from '../sqlite/folder-lock.ts';
import { databaseFile } from '../sqlite/location.ts';
import { readMoveRecord, writeMoveRecord } from '../sqlite/move-record.ts';
import { createTarget, openSource, type SourceDatabase } from '../sqlite/moving.ts';
import type { PostgresPlace, StoreOptions } from '../store.ts';
import { type Content, copyTables, type Progress, readTables, refuseDifference } from './copy.ts';

// Whether the data folder has a database file decides which of the two databases is served, at every moment of a
// move. The file gets or loses its name when all else is done and on disk. The stamp on PostgreSQL keeps other
// folders from serving that database meanwhile.

type Session = Awaited<ReturnType<typeof connectToUse>>;

/** What was moved. */
export interface Moved {
  /** Rows by table; undefined if an earlier run of the command had moved them. */
  readonly rows: Content['rows'] | undefined;
  /** The file of the former database, if it was on SQLite. */
  readonly kept?: string;
}

/** A deployment and its database on PostgreSQL, which it moves to or from. */
export interface Move extends Pick<StoreOptions, 'dataDir' | 'environment' | 'currency'> {
  readonly place: PostgresPlace;
  readonly progress: Progress;
}

/** Moves the database of a data folder to an empty database on PostgreSQL. Throws FolderInUse and DatabaseError. */
export async function moveToPostgres(move: Move): Promise<Moved> {
  const { dataDir, place } = move;
  if (!existsSync(databaseFile(dataDir)) && readMoveRecord(dataDir)?.url === place.url) return settle(move);
  const source = await openSource(move);
  try {
    return await withDatabase(place, (client) => fill(move, source, client));
  } finally {
    source.close();
  }
}

async function fill(
  { dataDir, place, progress }: Move,
  source: SourceDatabase,
  client: Session,
): Promise<Moved> {
  const stamp = await readStamp(client);
  const isFilled = stamp !== undefined && isOf(dataDir, stamp) && stamp.state === 'MOVING';
  const isEmpty = (await schemaOf(client)) === 0;
  if (!isEmpty && !isFilled)
    throw new DatabaseError(`the database has the tables of Artseal already: name an empty one.`);
  const { folderId } = writeMoveRecord(dataDir, place.url);
  await client.query('BEGIN');
  const target = createPortable(client);
  let content: Content;
  if (isEmpty) {
    await applyMissing(client);
    content = await copyTables(source.tables, target, progress);
    await continueIds(client);
    await writeStamp(client, { state: 'MOVING', folderId, folder: resolve(dataDir) });
  } else content = await readTables(source.tables, progress);
  refuseDifference(content, await readTables(target, progress), emptyIt);
  await client.query('COMMIT');
  const kept = source.setAside();
  await writeStamp(client, undefined);
  return { rows: content.rows, kept };
}

const emptyIt = 'Nothing was moved: drop the database on PostgreSQL, create it, and run the command again.';

/** Ends a move to PostgreSQL that was interrupted after it was decided. */
async function settle({ dataDir, place }: Move): Promise<Moved> {
  const lock = lockFolder(resolve(dataDir));
  try {
    await settleStamp(dataDir, place);
    return { rows: undefined };
  } finally {
    lock.release();
  }
}

/**
 * Removes the stamp of an interrupted move from the database of a folder that has none of its own. The caller has the
 * lock of the folder.
 */
export async function settleStamp(dataDir: string, place: PostgresPlace): Promise<void> {
  await withDatabase(place, async (client) => {
    const stamp = await readStamp(client);
    if (stamp?.state === 'MOVING' && isOf(dataDir, stamp)) await writeStamp(client, undefined);
  });
}

/** Moves a database on PostgreSQL into its data folder. Throws FolderInUse and DatabaseError. */
export async function moveToFolder(move: Move): Promise<Moved> {
  const lock = lockFolder(resolve(move.dataDir));
  try {
    return await withDatabase(move.place, (client) => empty(move, client));
  } finally {
    lock.release();
  }
}

async function empty({ dataDir, place, progress }: Move, client: Session): Promise<Moved> {
  const stamp = await readStamp(client);
  const isBegun = stamp?.state === 'MOVING' && isOf(dataDir, stamp);
  const folder = resolve(dataDir);
  if (existsSync(databaseFile(dataDir))) {
    if (!isBegun)
      throw new DatabaseError(`${databaseFile(dataDir)} is there already: the folder must have no database.`);
    await writeStamp(client, { ...stamp, state: 'MOVED' });
    return { rows: undefined };
  }
  if (!isBegun) await refuseMoved(client);
  if ((await schemaOf(client)) === 0)
    throw new DatabaseError('the database has no tables of Artseal: there is nothing to move.');
  await refuseOtherSchema(client);
  const target = createTarget(dataDir);
  try {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const content = await copyTables(createPortable(client), target.tables, progress);
    await client.query('COMMIT');
    refuseDifference(content, await readTables(target.tables, progress), 'Nothing was moved.');
    await target.finish();
    const { folderId } = writeMoveRecord(dataDir, place.url);
    await writeStamp(client, { state: 'MOVING', folderId, folder });
    target.putInPlace();
    await writeStamp(client, { state: 'MOVED', folderId, folder });
    return { rows: content.rows };
  } finally {
    target.close();
  }
}

const isOf = (dataDir: string, { folderId }: MoveStamp): boolean =>
  readMoveRecord(dataDir)?.folderId === folderId;

async function withDatabase<T>(place: PostgresPlace, work: (client: Session) => Promise<T>): Promise<T> {
  const client = await connectToUse(place, async () => {}, {
    connection: { isMaintenance: true },
    isForMove: true,
  });
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
