import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { DatabaseError } from '../engine/failure.ts';
import type { PostgresPlace } from '../store.ts';
import { type ConnectionUse, connect, refuseUnsafe } from './connection.ts';
import { refuseMoved } from './move-stamp.ts';
import { watchState } from './server-state.ts';

/** How long a line waits between two attempts to connect again. */
const retryMs = 250;

/** How long the fate of a COMMIT may stay unknown: as long as a restart or a fail-over takes. */
const fateMs = 30_000;

/** As `openLine` makes it. */
export type Line = Awaited<ReturnType<typeof openLine>>;

/** Another process uses the database. */
class DatabaseInUse extends DatabaseError {
  override name = 'DatabaseInUse';
}

/**
 * The connection of the one process that uses a database. If it is lost, it connects again. Throws DatabaseError, also if another
 * process uses the database.
 */
export async function openLine(place: PostgresPlace, prepare: (client: pg.Client) => Promise<void>) {
  let client: pg.Client | undefined = await connectAlone(place, prepare);
  /** The one of the open transaction. A new one would execute the rest of that without its begin. */
  let session = client;
  let fault: string | undefined;
  let isClosed = false;
  let connecting: Promise<void> | undefined;
  const lost = Promise.withResolvers<Error>();
  const state = watchState(place);
  let reconnects = 0;
  let commitsInDoubt = 0;
  watch(client);

  function watch(current: pg.Client): void {
    current.once('end', () => {
      if (isClosed || client !== current) return;
      client = undefined;
      fault = 'the connection to the database was lost';
      connecting = reconnect((current as unknown as { processID: number }).processID);
    });
  }

  /** Connects again, and ends the session before: it may not know yet that nobody is there, and holds its locks. */
  async function reconnect(processId: number): Promise<void> {
    while (client === undefined && !isClosed) {
      try {
        const next = await connectAlone(place, async (session) => {
          await session.query(endSession, [processId]);
        });
        watch(next);
        client = next;
        fault = undefined;
        reconnects += 1;
      } catch (error) {
        if (!(error instanceof DatabaseError)) return lost.resolve(error as Error);
        fault = error.message;
        await delay(retryMs);
      }
    }
  }

  /** Sends the queries of a turn of the event loop with one system call, which costs more than to make them. */
  const query = ((...args: Parameters<pg.Client['query']>) => {
    const { stream } = (session as unknown as { connection: { stream: Socket } }).connection;
    if (stream.writableCorked === 0) {
      stream.cork();
      process.nextTick(() => stream.uncork());
    }
    return session.query(...args);
  }) as pg.Client['query'];

  return {
    /** Sends a query to the session that the transaction began in. */
    query,
    /** Begins a transaction. Returns whether it is in another session than the one before. Throws ConnectionLost. */
    begin: (): boolean => {
      if (client === undefined) throw new ConnectionLost(fault);
      const isOther = client !== session;
      session = client;
      return isOther;
    },
    /** Whether the session that the transaction began in is still there. */
    isInSession: (): boolean => client === session,
    /** Why there is no connection; undefined while there is one. */
    fault: (): string | undefined => fault,
    /** Resolves with the reason if it cannot connect any more. */
    lost: lost.promise,
    lose: lost.resolve,
    /** Whether the batch of the lost session was committed; undefined if there is no new session soon enough. */
    wasCommitted: async (batch: number): Promise<boolean | undefined> => {
      commitsInDoubt += 1;
      const timeout = AbortSignal.timeout(fateMs);
      while (!timeout.aborted) {
        // A new session holds the lock of the old one, which has therefore ended.
        const next = client === session ? undefined : client;
        const found = await next?.query(selectBatch, [batch]).catch(() => undefined);
        if (found !== undefined) return found.rows.length > 0;
        await delay(retryMs);
      }
      return undefined;
    },
    /** Metrics of the connection, and the last state of the database. */
    metrics: () => ({ isConnected: client !== undefined, reconnects, commitsInDoubt, state: state.latest() }),
    close: async (): Promise<void> => {
      isClosed = true;
      await connecting;
      await state.close();
      await client?.end();
    },
  };
}

/** There is no connection now. */
export class ConnectionLost extends Error {
  readonly code = 'ECONNRESET';
  constructor(fault: string | undefined) {
    super(fault ?? 'the connection to the database was lost');
  }
}

/**
 * Connects, and holds the lock of the database until the connection ends. Rejects a database that is or was moved, unless it
 * is opened to move it. Throws what `openLine` throws.
 */
export async function connectAlone(
  place: PostgresPlace,
  prepare: (client: pg.Client) => Promise<void>,
  use?: ConnectionUse,
  isForMove = false,
): Promise<pg.Client> {
  const client = await connect(place, use);
  try {
    await refuseUnsafe(client);
    await prepare(client);
    const { rows } = await client.query<{ isFree: boolean; name: string }>(takeLock);
    if (rows[0]?.isFree !== true)
      throw new DatabaseInUse(
        `another artseal uses the database ${rows[0]?.name}, a server or a command: wait until it ends or stop it.`,
      );
    if (!isForMove) await refuseMoved(client);
    return client;
  } catch (error) {
    await client.end();
    throw error;
  }
}

/** Held by the session until it ends. */
const takeLock = `SELECT pg_try_advisory_lock(hashtextextended('artseal process', 0)) AS "isFree", current_database() AS name`;

const endSession = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
  WHERE pid = $1 AND application_name = 'artseal' AND datname = current_database() AND usename = current_user`;

const selectBatch = 'SELECT id FROM batch WHERE id = $1';
