import type { Event, EventType } from '../../domain/event.ts';
import type { Asynchronous, EventReads } from '../engine/parts.ts';
import type { Queries } from './leaf-rows.ts';

/** A row of an event. Columns without a value are null. */
interface EventRow {
  readonly position: number;
  readonly callerId: number;
  readonly sequence: number;
  readonly type: EventType;
  readonly atMs: number;
  readonly [detail: string]: unknown;
}

const select = `SELECT position, caller_id AS "callerId", sequence, type, at_ms AS "atMs", filing_no AS "filingNo",
  escrow_id AS "escrowId", state, key_id AS "keyId", month, percent, webhook_id AS "webhookId" FROM event`;

/** Reads the events of callers. */
export function createEventReads(queries: Queries): Asynchronous<EventReads> {
  async function rowsOf<Row>(text: string, values: readonly unknown[]): Promise<Row[]> {
    const { rows } = await queries.query(text, [...values]);
    return rows as Row[];
  }
  const eventsOf = async (text: string, ...values: unknown[]): Promise<Event[]> =>
    (await rowsOf<EventRow>(text, values)).map(toEvent);
  const numberOf = async (text: string, ...values: unknown[]): Promise<number | undefined> =>
    (await rowsOf<{ n: number | null }>(text, values))[0]?.n ?? undefined;

  const newest = async (callerId: number): Promise<number> =>
    (await numberOf(
      `SELECT greatest((SELECT max(sequence) FROM event WHERE caller_id = $1),
        (SELECT sequence FROM event_floor WHERE caller_id = $1)) AS n`,
      callerId,
    )) ?? 0;
  const newestPosition = async (): Promise<number> =>
    (await numberOf(
      `SELECT greatest((SELECT max(position) FROM event),
        (SELECT position FROM event_floor WHERE caller_id = 0)) AS n`,
    )) ?? 0;

  return {
    after: async (callerId, sequence, limit) => {
      const events = await eventsOf(
        `${select} WHERE caller_id = $1 AND sequence > $2 ORDER BY sequence LIMIT $3`,
        ...[callerId, sequence, limit],
      );
      const [first] = events;
      const isWhole =
        first === undefined ? (await newest(callerId)) <= sequence : first.sequence === sequence + 1;
      return { events, isWhole };
    },
    before: async (callerId, sinceMs) => {
      const first = await numberOf(
        'SELECT sequence AS n FROM event WHERE caller_id = $1 AND at_ms >= $2 ORDER BY sequence LIMIT 1',
        ...[callerId, sinceMs],
      );
      return first === undefined ? newest(callerId) : first - 1;
    },
    at: async (callerId, sequence) =>
      (await eventsOf(`${select} WHERE caller_id = $1 AND sequence = $2`, callerId, sequence))[0],
    newest,
    oldest: (callerId) => numberOf('SELECT min(sequence) AS n FROM event WHERE caller_id = $1', callerId),
    afterPosition: (position, limit) =>
      eventsOf(`${select} WHERE position > $1 ORDER BY position LIMIT $2`, position, limit),
    positionBefore: async (sinceMs) => {
      const first = await numberOf(
        'SELECT position AS n FROM event WHERE at_ms >= $1 ORDER BY position LIMIT 1',
        sinceMs,
      );
      return first === undefined ? newestPosition() : first - 1;
    },
    newestPosition,
    oldestPosition: () => numberOf('SELECT min(position) AS n FROM event'),
    lagging: (limit) =>
      rowsOf(
        `SELECT webhook.caller_id AS "callerId", cursor FROM webhook
          WHERE status = 'ENABLED' AND failing_since_s IS NULL
            AND cursor < (SELECT max(sequence) FROM event WHERE event.caller_id = webhook.caller_id) LIMIT $1`,
        [limit],
      ),
  };
}

/** The event of a row: without details that have no value. */
const toEvent = (row: EventRow): Event =>
  Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null)) as unknown as Event;
