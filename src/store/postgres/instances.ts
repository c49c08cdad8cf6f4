import { type Handlers, reads, writes } from '../engine/handlers.ts';
import { goneAfterS, type Instance, type InstanceFacts } from '../instance-commands.ts';
import { idleInTransactionTimeoutMs } from './connection.ts';
import type { Queries } from './leaf-rows.ts';
import { migrations } from './upgrade.ts';

/**
 * If a session that leads or has the fence has waited for its instance for so many seconds, another instance ends it. For its instance
 * was stopped, or its network was cut.
 */
const stoppedAfterS = 5;

/**
 * If an instance is stopped while its transaction has the fence, all others wait. So its session is ended after this time. Pauses of
 * one that works are shorter. In milliseconds.
 */
const pauseMaxMs = 500;

/** As `createInstances` makes them. */
export type Instances = ReturnType<typeof createInstances>;

/**
 * The instances that serve the database, of which this is one once it has joined. Each reports once a second. The one whose session
 * has a lock leads; the lock ends with the session. No other instance has the same `id`.
 */
export function createInstances(queries: Queries, id: number) {
  let facts: InstanceFacts | undefined;
  let isDue = false;
  /** Whether the transaction that has begun sends the report. */
  let isSigning = false;
  let isLeading = false;
  /** Whether the session may lead: the database has all that this instance knows. */
  let mayLead = false;
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
      // An instance without others leads at once.
      if (!isLeading) await tryToLead();
      isDue = true;
      return (await list()).filter(({ isOwn, isGone }) => !isOwn && !isGone);
    }),
    ListInstances: reads(list),
  };

  return {
    handlers,
    /** Makes the next report of this instance due. */
    wake: (): void => {
      isDue = true;
    },
    /** Before a transaction, ends the sessions of others that were stopped, if a report is due. `sign` sends the report in it. */
    endStopped: (): readonly Promise<unknown>[] => {
      if (!isDue || facts === undefined) return [];
      isDue = false;
      isSigning = true;
      return [queries.query(endStopped).catch(() => {})];
    },
    /** Sends the report if it is due, and takes the lead if no other instance has it. */
    sign: (): readonly Promise<unknown>[] => {
      if (!isSigning || facts === undefined) return [];
      isSigning = false;
      const entered = enter(facts);
      if (isLeading) return [entered, queries.query(deleteGone)];
      return mayLead ? [entered, tryToLead()] : [entered];
    },
    /** Call it when the session is another one, which does not lead yet. */
    joinedSession: (): void => {
      isLeading = mayLead = false;
      isDue = true;
    },
    /** Call it when the database was found to have all that this instance knows. */
    mayLead: (): void => {
      if (!mayLead) isDue = true;
      mayLead = true;
    },
    hasJoined: (): boolean => facts !== undefined,
    isLeading: (): boolean => isLeading,
    /** The number of others that serve, as of the last report. */
    others: (): number => others,
    leave: async (): Promise<void> => {
      if (facts !== undefined) await queries.query('DELETE FROM instance WHERE id = $1', [id]);
    },
  };
}

const isOfThisDatabase = `locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`;

/** A session holds the lock of its id. The session of a machine that died can do so for hours, but the machine does not report. */
const isGone = `(seen_at < clock_timestamp() - interval '${goneAfterS} s' OR NOT EXISTS (
  SELECT FROM pg_locks WHERE ${isOfThisDatabase}
    AND classid::bigint << 32 | objid::bigint = hashtextextended('artseal instance ' || id, 0)))`;

const enterOwn = {
  name: 'enter instance',
  text: `WITH own AS (
      INSERT INTO instance (id, schema, facts, is_leading) VALUES ($1, $2, $3, $4)
      ON CONFLICT (id) DO UPDATE SET facts = excluded.facts, is_leading = excluded.is_leading,
        seen_at = clock_timestamp()
    )
    SELECT count(*) AS others, set_config('idle_in_transaction_session_timeout',
      CASE WHEN count(*) > 0 THEN '${pauseMaxMs}' ELSE '${idleInTransactionTimeoutMs}' END, false)
    FROM instance WHERE id <> $1 AND NOT ${isGone}`,
};

const selectInstances = `SELECT facts, is_leading AND NOT ${isGone} AS "isLeading", ${isGone} AS "isGone", id = $1 AS "isOwn",
    greatest(0, floor(extract(epoch FROM clock_timestamp() - seen_at) * 1000))::bigint AS "unseenMs"
  FROM instance ORDER BY joined_at, id`;

/** Only the session of the instance that leads has this lock. Only tests change it. */
export const takeLead = {
  name: 'lead',
  text: `SELECT pg_try_advisory_lock(hashtextextended('artseal leader', 0)) AS leads`,
};

/**
 * The session of an instance that works waits for it for 250 ms at most. PostgreSQL does not end a session whose client has sent only
 * a part of a message. Sessions of other roles are not found: a role does not see what they wait for, and may not end them.
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
