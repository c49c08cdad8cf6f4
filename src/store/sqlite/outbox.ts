import { eq, sql } from 'drizzle-orm';
import { type Event, type EventType, eventRetentionS, type NewEvent } from '../../domain/event.ts';
import { createEventNews, createPendingEvents } from '../engine/outbox.ts';
import { eventLog, eventMark } from '../engine/schema.ts';
import { named, placeholdersFor } from '../engine/statement.ts';
import type { TrustedClock } from '../engine/trusted-clock.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** The id of the head of all events. No caller has it. */
export const everybody = 0;

/** Events that share a row, at most: two such rows fill a page. */
export const eventsPerRow = 24;

/** One event in so many of a caller has a mark at which its chain can be entered. */
export const eventsPerMark = 64;

/** Expired rows that each transaction with events deletes: twice as many as most of them add. */
const sweptPerWrite = 2;

/** Callers whose heads are kept in memory, at most. */
const headsMax = 10_000;

/** The events that a transaction wrote: positions up to `to`. */
interface Written {
  readonly to: number;
  readonly callers: readonly number[];
}

interface Head {
  readonly sequence: number;
  readonly position: number;
}

/** Prepares the query of the newest event of a caller. */
export function headReader({ $client: client }: SqliteDatabase): (callerId: number) => Head {
  // Plain SQL, like the write: both run for each caller of each transaction.
  const select = client.prepare<[number], Head>(
    'SELECT sequence, position FROM event_head WHERE caller_id = ?',
  );
  return (callerId) => select.get(callerId) ?? { sequence: 0, position: 0 };
}

/** As `createOutbox` makes it. */
export type Outbox = ReturnType<typeof createOutbox>;

/** Collects the events of a transaction, and writes those that are kept once, before COMMIT. */
export function createOutbox(database: SqliteDatabase, clock: Pick<TrustedClock, 'notAfter'>) {
  const headOf = headReader(database);
  const { insertRow, insertMark, writeHead, sweep } = prepareWrites(database);
  const pending = createPendingEvents();
  const news = createEventNews();
  /** What this transaction wrote. */
  let written: Written | undefined;
  /** Heads of callers. */
  const heads = new Map<number, Head>();
  /** The position of the newest event. */
  let newestPosition = headOf(everybody).position;

  /** Numbers the pending events; returns their lines and callers. */
  function numbered(): { readonly lines: string[]; readonly callers: ReadonlySet<number> } {
    if (heads.size > headsMax) heads.clear();
    const callers = new Set<number>();
    const lines = pending.events.map((event, index) => {
      const { callerId } = event;
      const head = heads.get(callerId) ?? headOf(callerId);
      const [sequence, position] = [head.sequence + 1, newestPosition + 1 + index];
      if (sequence % eventsPerMark === 0) insertMark.run({ callerId, sequence, position });
      heads.set(callerId, { sequence, position });
      callers.add(callerId);
      return lineOf(event, sequence, head.position);
    });
    return { lines, callers };
  }

  return {
    ...{ add: pending.add, keep: pending.keep, drop: pending.drop, takeNews: news.take },
    /** Writes all kept events. */
    write: (): void => {
      const newest = pending.events.at(-1);
      if (newest === undefined) return;
      const { lines, callers } = numbered();
      const newestAtS = Math.floor(newest.atMs / 1_000);
      for (let index = 0; index < lines.length; index += eventsPerRow) {
        const shared = lines.slice(index, index + eventsPerRow);
        const first = newestPosition + 1 + index;
        insertRow.run({ id: first + shared.length - 1, first, newestAtS, lines: shared.join('\n') });
      }
      const to = newestPosition + lines.length;
      for (const callerId of callers) {
        const { sequence, position } = heads.get(callerId) ?? headOf(callerId);
        writeHead.run(callerId, sequence, position);
      }
      writeHead.run(everybody, to, to);
      sweep(clock.notAfter(newestAtS) - eventRetentionS);
      written = { to, callers: [...callers] };
      pending.clear();
    },
    committed: (): void => {
      if (written === undefined) return;
      news.add(written.callers);
      newestPosition = written.to;
      written = undefined;
    },
    rolledBack: (): void => {
      pending.clear();
      written = undefined;
      heads.clear();
    },
  };
}

const prepareWrites = (database: SqliteDatabase) => ({
  ...prepare(database, {
    insertRow: database.insert(eventLog).values(placeholdersFor(eventLog)),
    insertMark: database.insert(eventMark).values(placeholdersFor(eventMark)),
  }),
  writeHead: database.$client.prepare<[number, number, number]>(
    'INSERT OR REPLACE INTO event_head (caller_id, sequence, position) VALUES (?, ?, ?)',
  ),
  sweep: createSweep(database),
});

/** An event as its line stores it. The position of the line gives its position. */
interface LinedEvent extends Omit<Event, 'position'> {
  /** The position of the caller's previous event; 0 for the first. */
  readonly previous: number;
}

/** The optional members of an event, in the order of the line. */
export const details = ['filingNo', 'escrowId', 'state', 'keyId', 'month', 'percent', 'webhookId'] as const;

/** Writes an event as space-separated words: five, then `name=value` for each detail. No word contains a space. */
export function lineOf(event: NewEvent, sequence: number, previous: number): string {
  let line = `${event.callerId} ${sequence} ${previous} ${event.type} ${event.atMs}`;
  for (const name of details) if (event[name] !== undefined) line += ` ${name}=${event[name]}`;
  return line;
}

/** Parses a line of `lineOf`. */
export function readLine(line: string): LinedEvent {
  const [callerId, sequence, previous, type, atMs, ...words] = line.split(' ');
  const found = Object.fromEntries(words.map((word) => word.split('=')));
  return {
    ...found,
    ...(found.percent !== undefined && { percent: Number(found.percent) }),
    callerId: Number(callerId),
    sequence: Number(sequence),
    previous: Number(previous),
    type: type as EventType,
    atMs: Number(atMs),
  };
}

/** Prepares the deletion of the oldest rows from before a time, Unix seconds, with their marks. */
function createSweep(database: SqliteDatabase): (beforeS: number) => void {
  const { selectOldest, deleteRow } = prepare(database, {
    selectOldest: database
      .select(named({ id: eventLog.id, newestAtS: eventLog.newestAtS }))
      .from(eventLog)
      .orderBy(eventLog.id)
      .limit(1),
    deleteRow: database
      .delete(eventLog)
      .where(eq(eventLog.id, sql.placeholder('id')))
      .returning({ lines: eventLog.lines }),
  });
  const deleteMark = database.$client.prepare('DELETE FROM event_mark WHERE caller_id = ? AND sequence = ?');
  return (beforeS) => {
    for (let swept = 0; swept < sweptPerWrite; swept += 1) {
      const oldest = selectOldest.get();
      if (oldest === undefined || oldest.newestAtS >= beforeS) return;
      for (const line of deleteRow.get(oldest)?.lines.split('\n') ?? []) {
        const { callerId, sequence } = readLine(line);
        if (sequence % eventsPerMark === 0) deleteMark.run(callerId, sequence);
      }
    }
  };
}
