import { eventRetentionS } from '../../domain/event.ts';
import { createEventNews, createPendingEvents } from '../engine/outbox.ts';
import { insertRows } from './insert-rows.ts';
import type { Queries } from './leaf-rows.ts';

/** Callers whose newest sequence is kept in memory, at most. */
const callersMax = 10_000;

/** Expired events that are deleted with each that is written: more than one, so that they cannot pile up. */
const sweptWithEach = 2;

/** Collects the events of a transaction, and sends those that are kept before COMMIT. */
export function createOutbox(queries: Queries, notAfter: (nowS: number) => Promise<number>) {
  const pending = createPendingEvents();
  const news = createEventNews();
  /** The sequence of the newest event of each caller. */
  const sequences = new Map<number, number>();
  /** The position of the newest event of all. */
  let position = 0;
  /** Without the open transaction. */
  let durablePosition = 0;
  /** Callers with events of this transaction. */
  const written = new Set<number>();
  /** All events before this position are deleted, so the next search for expired ones begins here. */
  let sweptTo = 0;
  /** Events from before this time have expired, Unix milliseconds. */
  let beforeMs = 0;

  /** Reads what is needed to number the pending events. */
  async function readHeads(): Promise<void> {
    if (sequences.size > callersMax) sequences.clear();
    const callers = [...new Set(pending.events.map(({ callerId }) => callerId))];
    const unknown = callers.filter((callerId) => !sequences.has(callerId));
    if (unknown.length === 0) return;
    const heads = await queries.query<{ caller_id: number; sequence: number }>({
      ...selectSequences,
      values: [unknown],
    });
    for (const { caller_id: callerId, sequence } of heads.rows) sequences.set(callerId, sequence);
  }

  function* numbered() {
    for (const { callerId, type, atMs, ...event } of pending.events) {
      const sequence = (sequences.get(callerId) ?? 0) + 1;
      position += 1;
      sequences.set(callerId, sequence);
      written.add(callerId);
      const { filingNo, escrowId, state, keyId, month, percent, webhookId } = event;
      yield {
        ...{ position, callerId, sequence, type, atMs },
        ...{ filingNo, escrowId, state, keyId, month, webhookId, percent },
      };
    }
  }

  async function sweep(limit: number): Promise<void> {
    const { rows } = await queries.query<{ position: number | null }>({
      ...deleteExpired,
      values: [sweptTo, beforeMs, limit],
    });
    sweptTo = rows[0]?.position ?? sweptTo;
  }

  return {
    /** The position of the newest event that this instance knows. */
    position: (): number => position,
    /** Takes the newest events of other instances since. */
    begin: (newest: readonly NewestEvent[]): void => {
      for (const { callerId, sequence, newestPosition } of newest) {
        const known = sequences.get(callerId);
        if (known !== undefined && known < sequence) sequences.set(callerId, sequence);
        position = Math.max(position, newestPosition);
      }
      durablePosition = position;
      news.add(newest.map(({ callerId }) => callerId));
    },
    load: async (): Promise<void> => {
      position = durablePosition = await readPosition(queries);
    },
    ...{ add: pending.add, keep: pending.keep, drop: pending.drop, takeNews: news.take },
    isWriting: (): boolean => pending.events.length > 0,
    /** Reads what `flush` needs. */
    prepare: async (): Promise<void> => {
      const newest = pending.events.at(-1);
      if (newest === undefined) return;
      await readHeads();
      beforeMs = ((await notAfter(Math.floor(newest.atMs / 1_000))) - eventRetentionS) * 1_000;
    },
    /** Sends all events. */
    flush: (): readonly Promise<unknown>[] => {
      const rows = [...numbered()];
      if (rows.length === 0) return [];
      pending.clear();
      return [...insertRows(queries, 'event', rows), sweep(rows.length * sweptWithEach)];
    },
    committed: (): void => {
      durablePosition = position;
      news.add(written);
      written.clear();
    },
    rolledBack: (): void => {
      pending.clear();
      written.clear();
      sequences.clear();
      position = durablePosition;
    },
  };
}

const selectSequences = {
  name: 'event sequences',
  text: `SELECT caller_id, greatest(
      (SELECT max(sequence) FROM event WHERE event.caller_id = given.caller_id),
      (SELECT sequence FROM event_floor WHERE event_floor.caller_id = given.caller_id), 0) AS sequence
    FROM unnest($1::bigint[]) AS given (caller_id)`,
};

/** The newest of some events of a caller: those of filings of a year, or the others, which have the year 0. */
export interface NewestEvent {
  readonly callerId: number;
  readonly year: number;
  readonly count: number;
  readonly sequence: number;
  readonly newestPosition: number;
}

/** Selects them from a position on. */
export const newestEvents = (after: string): string => `
  SELECT caller_id AS "callerId", CASE type WHEN 'filing.created' THEN substr(filing_no, 4, 4)::bigint ELSE 0 END AS year,
    count(*), max(sequence) AS sequence, max(position) AS "newestPosition"
  FROM event WHERE position > ${after} GROUP BY 1, 2`;

async function readPosition(queries: Queries): Promise<number> {
  const { rows } = await queries.query<{ position: number }>(selectPosition);
  return rows[0]?.position ?? 0;
}

const selectPosition = {
  name: 'event position',
  text: `SELECT greatest((SELECT max(position) FROM event),
    (SELECT position FROM event_floor WHERE caller_id = 0), 0) AS position`,
};

/** Deletes expired events, oldest first, and remembers the newest number of each caller among them. */
const deleteExpired = {
  name: 'expired events',
  text: `WITH expired AS (
      SELECT position, at_ms FROM event WHERE position > $1 ORDER BY position LIMIT $3
    ), gone AS (
      DELETE FROM event USING expired WHERE event.position = expired.position AND expired.at_ms < $2
      RETURNING event.position, event.caller_id, event.sequence
    ), floors AS (
      INSERT INTO event_floor (caller_id, sequence, position)
      SELECT caller_id, max(sequence), 0 FROM gone GROUP BY caller_id
      UNION ALL SELECT 0, 0, max(position) FROM gone HAVING count(*) > 0
      ON CONFLICT (caller_id) DO UPDATE SET
        sequence = greatest(event_floor.sequence, excluded.sequence),
        position = greatest(event_floor.position, excluded.position)
    )
    SELECT max(position) AS position FROM gone`,
};
