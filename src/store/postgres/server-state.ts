import type { Queries } from './leaf-rows.ts';

/** What the metrics and `check` report of a database. */
export interface DatabaseState {
  readonly bytes: number;
  /**
   * How long the oldest snapshot is kept, in seconds; undefined if the role may not see the sessions of others, for which it needs
   * pg_read_all_stats.
   */
  readonly snapshotS: number | undefined;
}

/** Reads the state of a database. */
export async function readState(queries: Queries): Promise<DatabaseState> {
  const { rows } = await queries.query<{ bytes: number; snapshotS: number | null }>(selectState);
  const { bytes = 0, snapshotS } = rows[0] ?? {};
  return { bytes, snapshotS: snapshotS ?? undefined };
}

const selectState = `SELECT pg_database_size(current_database()) AS bytes,
    CASE WHEN pg_has_role('pg_read_all_stats', 'USAGE')
      THEN coalesce(floor(extract(epoch FROM clock_timestamp() - min(began))), 0)::bigint END AS "snapshotS"
  FROM (
    SELECT xact_start AS began FROM pg_stat_activity
      WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_xmin IS NOT NULL
    UNION ALL SELECT prepared FROM pg_prepared_xacts WHERE database = current_database()
  ) AS snapshots`;
