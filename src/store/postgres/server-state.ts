import type { PostgresPlace } from '../store.ts';
import { connect } from './connection.ts';
import type { Queries } from './leaf-rows.ts';

/** What the metrics and `check` report of a database. */
export interface DatabaseState {
  readonly bytes: number;
  /** An estimate of the remembered nonces. */
  readonly nonces: number;
  /**
   * How long the oldest snapshot is kept, in seconds; undefined if the role may not see the sessions of others, for which it needs
   * pg_read_all_stats.
   */
  readonly snapshotS: number | undefined;
}

/** Reads the state of a database. */
export async function readState(queries: Queries): Promise<DatabaseState> {
  const { rows } = await queries.query<{ bytes: number; nonces: number; snapshotS: number | null }>(
    selectState,
  );
  const { bytes = 0, nonces = 0, snapshotS } = rows[0] ?? {};
  return { bytes, nonces, snapshotS: snapshotS ?? undefined };
}

const selectState = `SELECT pg_database_size(current_database()) AS bytes,
    (SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = to_regclass('nonce')) AS nonces,
    CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE')
      THEN coalesce(floor(extract(epoch FROM clock_timestamp() - min(began))), 0)::bigint END AS "snapshotS"
  FROM (
    SELECT xact_start AS began FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
    UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()
  ) AS snapshots`;

/** Reads the clock of the server, Unix milliseconds. */
export async function readClock(queries: Queries): Promise<number | undefined> {
  const { rows } = await queries.query<{ atMs: number }>(
    'SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "atMs"',
  );
  return rows[0]?.atMs;
}

/** How long a state is used, in milliseconds. PostgreSQL looks at each file of a database for its size. */
const stateMs = 60_000;

/** Reads the state of a database over connections of its own, so that no transaction waits for it. */
export function watchState(place: PostgresPlace) {
  let latest: DatabaseState | undefined;
  let isDue = true;
  let reading: Promise<void> | undefined;

  async function read(): Promise<void> {
    try {
      const client = await connect(place);
      try {
        latest = await readState(client);
      } finally {
        await client.end();
      }
    } catch {
      latest = undefined;
    }
  }

  return {
    /** The last state that was read, and reads the next one if it is old; undefined if none could be read. */
    latest: (): DatabaseState | undefined => {
      if (isDue) {
        isDue = false;
        reading = read().finally(() => {
          setTimeout(() => {
            isDue = true;
          }, stateMs).unref();
        });
      }
      return latest;
    },
    /** Resolves when its connection is closed. */
    close: async (): Promise<void> => reading,
  };
}
