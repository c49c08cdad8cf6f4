import { randomInt } from 'node:crypto';
import type { Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { DatabaseError } from '../engine/failure.ts';
import type { PostgresPlace } from '../store.ts';
import { type ConnectionUse, connect, refuseUnsafe } from './connection.ts';
import { refuseMoved } from './move-stamp.ts';
import { isMachineFault } from './postgres-errors.ts';
import { watchState } from './server-state.ts';

/** How long a line waits between two attempts to connect again. */
const retryMs = 250;

/** How long the fate of a COMMIT may stay unknown: as long as a restart or a fail-over takes. */
const fateMs = 30_000;

/** How often a line that waits for a new session checks for it, in milliseconds. */
const pollMs = 10;

/** How long a batch that was not stored waits for a new session, in milliseconds. */
const nextSessionMs = 5_000;

/** Draws an id that no other process uses. */
export const randomId = (): number => randomInt(2 ** 47);

/** As `openLine` makes it. */
export type Line = Awaited<ReturnType<typeof openLine>>;

/** Another process uses the database. */
class DatabaseInUse extends DatabaseError {
  override name = 'DatabaseInUse';
}

/**
 * The connection of a process to a database. With `instanceId`, it is that of an instance, beside which others may serve; otherwise
 * no other process may use the database. If it is lost, it connects again. Throws DatabaseError, also if another process is in the way.
 */
export async function openLine(
  place: PostgresPlace,
  prepare: (client: pg.Client) => Promise<void>,
  instanceId: number | undefined,
) {
  const open = (prepareAgain: typeof prepare) => connectToUse(place, prepareAgain, { instanceId });
  let client: pg.Client | undefined = await open(prepare);
  /** The one of the open transaction. A new one would execute the rest of that without its begin. */
  let session = client;
  let fault: string | undefined;
  let isClosed = false;
  let connecting: Promise<void> | undefined;
  const lost = Promise.withResolvers<Error>();
  const state = watchState(place);
  const counts = { reconnects: 0, commitsInDoubt: 0 };
  /** Whether an attempt to connect again has failed. */
  let isAway = false;
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
        const next = await open(endingSession(processId));
        watch(next);
        client = next;
        fault = undefined;
        isAway = false;
        counts.reconnects += 1;
      } catch (error) {
        if (!(error instanceof DatabaseError) && !isMachineFault(error)) return lost.resolve(error as Error);
        fault = error.message;
        isAway = true;
        await delay(retryMs);
      }
    }
  }

  /** Waits for a new session after that of the transaction, which has ended by then. */
  async function nextSession(timeout: AbortSignal, isHopeless = () => false): Promise<pg.Client | undefined> {
    while (!timeout.aborted && !isHopeless()) {
      if (client !== undefined && client !== session) return client;
      await delay(pollMs);
    }
    return undefined;
  }

  return {
    /** Sends a query to the session that the transaction began in. */
    query: sentTogether(() => session),
    /** Begins a transaction. Returns whether it is in another session than the one before. Throws ConnectionLost. */
    begin: (): boolean => {
      if (client === undefined) throw new ConnectionLost(fault);
      const isOther = client !== session;
      session = client;
      return isOther;
    },
    /** Whether the session that the transaction began in is still there. */
    isInSession: (): boolean => client === session,
    /** Whether a lost session is replaced soon. False at once if the database cannot be reached. */
    hasNextSession: async (): Promise<boolean> =>
      (await nextSession(AbortSignal.timeout(nextSessionMs), () => isAway)) !== undefined,
    /** Why there is no connection; undefined while there is one. */
    fault: (): string | undefined => fault,
    /** Resolves with the reason if it cannot connect any more. */
    ...{ lost: lost.promise, lose: lost.resolve },
    /** Whether the batch of the lost session was committed; undefined if there is no new session soon enough. */
    wasCommitted: async (batch: number): Promise<boolean | undefined> => {
      counts.commitsInDoubt += 1;
      const timeout = AbortSignal.timeout(fateMs);
      while (!timeout.aborted) {
        const next = await nextSession(timeout);
        const found = await next?.query(selectBatch, [batch, randomId()]).catch(() => undefined);
        if (found !== undefined) return found.rows.length > 0;
        await delay(retryMs);
      }
      return undefined;
    },
    /** Metrics of the connection, and the last state of the database. */
    metrics: () => ({ isConnected: client !== undefined, ...counts, state: state.latest() }),
    close: async (): Promise<void> => {
      isClosed = true;
      await connecting;
      await state.close();
      await client?.end();
    },
  };
}

/** Sends the queries of a turn of the event loop with one system call, which costs more than to make them. */
const sentTogether = (sessionNow: () => pg.Client) =>
  ((...args: Parameters<pg.Client['query']>) => {
    const session = sessionNow();
    const { stream } = (session as unknown as { connection: { stream: Socket } }).connection;
    if (stream.writableCorked === 0) {
      stream.cork();
      process.nextTick(() => stream.uncork());
    }
    return session.query(...args);
  }) as pg.Client['query'];

/** There is no connection now. */
export class ConnectionLost extends Error {
  readonly code = 'ECONNRESET';
  constructor(fault: string | undefined) {
    super(fault ?? 'the connection to the database was lost');
  }
}

/** Ends the session of an earlier connection. */
const endingSession = (processId: number) => async (client: pg.Client) =>
  void (await client.query(endSession, [processId]));

/** How a process uses a database. */
interface ProcessUse {
  /** The id of an instance, which other instances may serve beside; undefined if no other process may use the database. */
  readonly instanceId?: number | undefined;
  readonly connection?: ConnectionUse;
  readonly isForMove?: boolean;
}

/**
 * Connects, and holds the lock of the database until the connection ends. Rejects a database that is or was moved, unless it
 * is opened to move it. Throws what `openLine` throws.
 */
export async function connectToUse(
  place: PostgresPlace,
  prepare: (client: pg.Client) => Promise<void>,
  { instanceId, connection, isForMove = false }: ProcessUse = {},
): Promise<pg.Client> {
  const client = await connect(place, connection);
  try {
    await refuseUnsafe(client);
    await prepare(client);
    const lock =
      instanceId === undefined ? { text: takeLock } : { text: takeSharedLock, values: [instanceId] };
    const { rows } = await client.query<{ isFree: boolean; name: string }>(lock);
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

/** The lock of the instance is not free while its previous session has not ended. */
const takeSharedLock = `SELECT pg_try_advisory_lock_shared(hashtextextended('artseal process', 0))
  AND pg_try_advisory_lock(hashtextextended('artseal instance ' || $1::bigint, 0)) AS "isFree", current_database() AS name`;

/** Ends the session of a process id. */
export const endSession = `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
  WHERE pid = $1 AND application_name = 'artseal' AND datname = current_database() AND usename = current_user`;

/**
 * Finds a batch, and also writes a row. The batch may not be on the synchronous standby yet: the loss of its session ended the wait
 * for the standby. The commit of this row waits for it instead.
 */
const selectBatch = 'WITH written AS (INSERT INTO batch (id) VALUES ($2)) SELECT id FROM batch WHERE id = $1';
