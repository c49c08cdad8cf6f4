import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { goneAfterS, type Instance, type InstanceFacts } from '../instance-commands.ts';
import type { Queries } from './leaf-rows.ts';
import { migrations } from './upgrade.ts';

/**
 * A session that waits for so many seconds for the process that leads, or that has the fence, is ended: the process was stopped, or
 * its network is gone.
 */
const stoppedAfterS = 5;

/** As `createInstances` makes them. */
export type Instances = ReturnType<typeof createInstances>;

/**
 * The processes that serve the database, of which this is one once it has joined. Each says once a second that it is there. One of
 * them leads: the one whose session has a lock, which ends with the session. No other process has the id.
 */
export function createInstances(queries: Queries, id: number) {
  let facts: InstanceFacts | undefined;
  let isDue = false;
  let isLeading = false;
  let others = 0;

  async function list(): Promise<Instance[]> {
    const { rows } = await queries.query<Instance & { facts: string }>(selectInstances, [id]);
    return rows.map((row) => ({ ...row, facts: JSON.parse(row.facts) }));
  }

  async function enter(joining: InstanceFacts): Promise<void> {
    const { rows } = await queries.query<{ others: number }>({
      ...enterOwn,
      values: [id, migrations.length, JSON.stringify(joining), isLeading],
    });
    others = rows[0]?.others ?? 0;
  }

  async function tryToLead(): Promise<void> {
    const { rows } = await queries.query<{ leads: boolean }>(takeLead);
    if (rows[0]?.leads) isLeading = true;
  }

  const handlers: Handlers<'JoinInstances' | 'ListInstances'> = {
    JoinInstances: writes(async ({ facts: joining }) => {
      await enter(joining);
      facts = joining;
      // So that an instance without others leads at once.
      if (!isLeading) await tryToLead();
      isDue = true;
      return (await list()).filter(({ isOwn, isGone }) => !isOwn && !isGone);
    }),
    ListInstances: reads(list),
  };

  return {
    handlers,
    /** Makes it due to say that this process is there. */
    wake: (): void => {
      isDue = true;
    },
    /** Sends, before a transaction, what ends the sessions of others that were stopped. What else is due is sent in it. */
    endStopped: (): readonly Promise<unknown>[] =>
      isDue && facts !== undefined ? [queries.query(endStopped).catch(() => {})] : [],
    /** Sends what is due. */
    sign: (): readonly Promise<unknown>[] => {
      if (!isDue || facts === undefined) return [];
      isDue = false;
      const entered = enter(facts);
      return [entered, isLeading ? queries.query(deleteGone) : tryToLead()];
    },
    /** The session is another one, which leads nothing yet. */
    joinedSession: (): void => {
      isLeading = false;
      isDue = true;
    },
    hasJoined: (): boolean => facts !== undefined,
    isLeading: (): boolean => isLeading,
    /** Others that serve, as of the last second. */
    others: (): number => others,
    leave: async (): Promise<void> => {
      if (facts !== undefined) await queries.query('DELETE FROM instance WHERE id = $1', [id]);
    },
  };
}

const isOfThisDatabase = `locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** Its session has the lock of its id. That of a machine that died has it for hours. */
const isGone = `(seen_at < clock_timestamp() - interval '${goneAfterS} s' OR NOT EXISTS (
  SELECT FROM pg_locks WHERE ${isOfThisDatabase}
    AND classid::bigint << 32 | objid::bigint = hashtextextended('artseal instance ' || id, 0)))`;

const enterOwn = {
  name: 'enter instance',
  text: `WITH own AS (
      INSERT INTO instance (id, pid, schema, facts, is_leading) VALUES ($1, pg_backend_pid(), $2, $3, $4)
      ON CONFLICT (id) DO UPDATE SET pid = excluded.pid, facts = excluded.facts, is_leading = excluded.is_leading,
        seen_at = clock_timestamp()
    )
    SELECT count(*) AS others FROM instance WHERE id <> $1 AND NOT ${isGone}`,
};

const selectInstances = `SELECT facts, is_leading AND NOT ${isGone} AS "isLeading", ${isGone} AS "isGone", id = $1 AS "isOwn",
    greatest(0, floor(extract(epoch FROM clock_timestamp() - seen_at) * 1000))::bigint AS "unseenMs"
  FROM instance ORDER BY joined_at, id`;

/** Only the session of the leader has it. */
const takeLead = {
  name: 'lead',
  text: `SELECT pg_try_advisory_lock(hashtextextended('artseal leader', 0)) AS leads`,
};

/**
 * A session waits for its client each 250 ms only for a moment. PostgreSQL itself does not end one whose client has sent the half of
 * what it sends at a time. A role does not see what the sessions of others wait for, which it may not end either.
 */
const endStopped = {
  name: 'end stopped',
  text: `SELECT pg_terminate_backend(pid) FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE ${isOfThisDatabase} AND classid::bigint << 32 | objid::bigint
        IN (hashtextextended('artseal leader', 0), hashtextextended('artseal fence', 0))
      AND wait_event_type = 'Client' AND state_change < clock_timestamp() - interval '${stoppedAfterS} s'`,
};

const deleteGone = {
  name: 'delete instances',
  text: `DELETE FROM instance WHERE seen_at < clock_timestamp() - interval '1 hour'`,
};
