import type pg from 'pg';
import { createIncidents, DatabaseError } from '../engine/failure.ts';
import { faultsInLog } from '../engine/log-check.ts';
import { deployment } from '../engine/schema.ts';
import { type LookAtLog, readContent } from '../handlers/content.ts';
import { logNamesIn } from '../handlers/log-handlers.ts';
import type { LogNames } from '../log-commands.ts';
import type { PostgresPlace } from '../store.ts';
import { connect, refuseUnsafe } from './connection.ts';
import { createFilingReads } from './filings.ts';
import { createHandlers } from './handlers.ts';
import { createInstances } from './instances.ts';
import { connectToUse, randomId } from './line.ts';
import { classifyError } from './postgres-errors.ts';
import { refuseWithoutGrants } from './roles.ts';
import { readState } from './server-state.ts';
import { forHandlers } from './statement.ts';
import { migrate, migrations, schemaOf, tooNew } from './upgrade.ts';

/** What an upgrade would do. */
export interface PlannedUpgrade {
  readonly schema: number;
  readonly newSchema: number;
  /** The names of the migrations to run. */
  readonly migrations: readonly string[];
}

/** A report about a database. */
export type Inspection<T> = Awaited<ReturnType<typeof inspectDatabase<T>>>;

/** Says what an upgrade would do. Throws DatabaseError, also if the database has no tables or is too new. */
export function planUpgrade(place: PostgresPlace): Promise<PlannedUpgrade> {
  return withClient(place, planOf);
}

/**
 * Runs the missing migrations of a database while instances may serve it. Returns which. Throws what `planUpgrade` throws, and
 * DatabaseError if a command uses the database alone, or if an instance that serves could not use it afterwards.
 */
export async function upgradeDatabase(place: PostgresPlace): Promise<PlannedUpgrade> {
  const prepare = async (client: pg.Client) => {
    await refuseWithoutGrants(client);
    await planOf(client);
  };
  const use = { instanceId: randomId(), connection: { isMaintenance: true } };
  const client = await connectToUse(place, prepare, use);
  try {
    const plan = await planOf(client);
    await migrate(client);
    return plan;
  } finally {
    await client.end();
  }
}

async function planOf(client: pg.Client): Promise<PlannedUpgrade> {
  const why = await tooNew(client);
  if (why !== undefined) throw new DatabaseError(`${why}.`);
  const schema = await schemaOf(client);
  if (schema === 0) throw new DatabaseError('the database has no tables of Artseal: run artseal init.');
  const names = migrations.slice(schema).map(({ name }) => name);
  return { schema, newSchema: Math.max(schema, migrations.length), migrations: names };
}

/** Whether a database has no tables of Artseal. Throws DatabaseError. */
export function isEmpty(place: PostgresPlace): Promise<boolean> {
  return withClient(place, async (client) => (await schemaOf(client)) === 0);
}

/** The origins of the evidence log. The database may have any schema or no tables. Throws DatabaseError. */
export function readLogNames(place: PostgresPlace): Promise<LogNames> {
  return withClient(place, namesIn);
}

async function namesIn(client: pg.Client): Promise<LogNames> {
  const isMade = (await schemaOf(client)) > 0;
  return isMade ? logNamesIn(forHandlers(client)) : { names: [], origin: undefined };
}

/**
 * Reads a whole database, which another process may use, and changes nothing. It calls `lookAtLog` meanwhile.
 * `year` is one of the business calendar. Throws DatabaseError if it cannot connect.
 */
export function inspectDatabase<T>(
  place: PostgresPlace,
  { year, nowMs }: { readonly year: number; readonly nowMs: () => number },
  lookAtLog: LookAtLog<T>,
) {
  return withClient(place, async (client) => {
    const unsafe = await refuseUnsafe(client).then(
      () => undefined,
      (error: Error) => error.message,
    );
    // The report is of one moment.
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const [schema, knownSchema] = [await schemaOf(client), migrations.length];
    const reason = await tooNew(client);
    const isReadable = reason === undefined && schema >= knownSchema;
    return {
      ...(await readServer(client, nowMs)),
      /** Why PostgreSQL would lose what was committed; undefined if it would not. */
      unsafe,
      /** 0 if the database has no tables of Artseal. */
      schema,
      /** The schema that this version upgrades to. */
      knownSchema,
      /** Why this version cannot use the database; undefined if it can. */
      tooNew: reason,
      /** The origins of its evidence log. */
      logNames: await namesIn(client),
      /** Undefined if the database has an older schema, is too new, or is bound to no deployment. */
      content: isReadable ? await contentOf(client, year, lookAtLog) : undefined,
    };
  });
}

/** What the report says about the server. */
async function readServer(client: pg.Client, nowMs: () => number) {
  const state = await readState(client);
  const sentMs = nowMs();
  const { rows } = await client.query<ServerRow>(selectServer);
  const [server] = rows;
  if (server === undefined) throw new Error('PostgreSQL returned no row.');
  /** How far the clock of PostgreSQL is ahead, in milliseconds. */
  const aheadMs = server.atMs - (sentMs + nowMs()) / 2;
  return { ...server, ...state, aheadMs };
}

interface ServerRow {
  readonly version: string;
  readonly role: string;
  /** Whether it may change the tables, as their owner or a superuser. */
  readonly isOwner: boolean;
  /** Its time, Unix milliseconds. */
  readonly atMs: number;
  /** The names of replication slots that nobody uses. */
  readonly unusedSlots: readonly string[];
  /** Whether commits wait for a standby. */
  readonly hasSynchronousStandby: boolean;
}

const selectServer = `SELECT split_part(current_setting('server_version'), ' ', 1) AS version,
    current_user::text AS role,
    coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = to_regclass('log_leaf')), false) AS "isOwner",
    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "atMs",
    ARRAY(SELECT slot_name::text FROM pg_replication_slots WHERE NOT active ORDER BY 1) AS "unusedSlots",
    current_setting('synchronous_standby_names') <> '' AS "hasSynchronousStandby"`;

async function contentOf<T>(client: pg.Client, year: number, lookAtLog: LookAtLog<T>) {
  const database = forHandlers(client);
  const bound = await database.select().from(deployment).get();
  if (bound === undefined) return undefined;
  const { all, log } = createHandlers(
    client,
    bound,
    createIncidents(classifyError),
    createInstances(client, 0).handlers,
  );
  const { rows } = await client.query<{ leaves: number }>(
    'SELECT coalesce(max(id) + 1, 0) AS leaves FROM log_leaf',
  );
  await log.begin(rows[0]?.leaves ?? 0, 0, []);
  const parts = {
    ...{ database, deployment: bound, filings: createFilingReads(client), log: log.forHandlers },
    findFaults: () => faultsInLog(database),
    readTimes: async () => all.ReadLogClock.run({ kind: 'ReadLogClock' }),
  };
  return readContent(parts, year, lookAtLog);
}

/** Connects as a role that may serve, and closes the connection when the work has ended. */
async function withClient<T>(place: PostgresPlace, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(place, { isMaintenance: true });
  try {
    await refuseWithoutGrants(client);
    return await work(client);
  } finally {
    await client.end();
  }
}
