import { and, asc, eq, gt, gte, isNull, lte, ne, or, sql } from 'drizzle-orm';
import { type Event, eventsAhead, eventsExpired, holdWarningS } from '../../domain/event.ts';
import { type EventCommands, type EventPage, eventPageMax } from '../event-commands.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { everybody, headReader, type Outbox, readLine } from './outbox.ts';
import { caller, escrow, eventLog, eventMark } from './schema.ts';
import { type Database, prepare } from './statement.ts';

/** Events after a sequence. */
interface EventsAfter {
  readonly events: readonly Event[];
  /** Whether no event between the sequence and these has expired. */
  readonly isWhole: boolean;
}

/** An event, with the position of the caller's previous one. */
type ChainedEvent = ReturnType<typeof readLine> & Event;

/** The rows from the one with a position, or from the next one. */
const rowsFrom = (database: Database) =>
  database
    .select({ id: eventLog.id, first: eventLog.first, lines: eventLog.lines })
    .from(eventLog)
    .where(gte(eventLog.id, sql.placeholder('position')))
    .orderBy(asc(eventLog.id));

/** Reads the events of callers: follows their chains. */
export type EventReads = ReturnType<typeof createEventReads>;

export function createEventReads(database: Database) {
  const headOf = headReader(database);
  const { selectRows, selectMark } = prepare(database, {
    selectRows: rowsFrom(database),
    selectMark: database
      .select({ position: eventMark.position })
      .from(eventMark)
      .where(
        and(
          eq(eventMark.callerId, sql.placeholder('callerId')),
          gte(eventMark.sequence, sql.placeholder('sequence')),
        ),
      )
      .orderBy(asc(eventMark.sequence))
      .limit(1),
  });

  /** Yields a caller's events from one backwards, as far as they are kept. */
  function* chainFrom(position: number): Generator<ChainedEvent> {
    let row: ReturnType<typeof selectRows.get>;
    let lines: readonly string[] = [];
    for (let at = position; at > 0; ) {
      if (row === undefined || at < row.first || at > row.id) {
        row = selectRows.get({ position: at });
        if (row === undefined || at < row.first) return;
        lines = row.lines.split('\n');
      }
      const event = { ...readLine(lines[at - row.first] ?? ''), position: at };
      yield event;
      at = event.previous;
    }
  }

  /** The position at which to enter a caller's chain to reach the event of a sequence, or the first after it. */
  const entryTo = (callerId: number, sequence: number): number =>
    selectMark.get({ callerId, sequence })?.position ?? headOf(callerId).position;

  /** Events after a sequence, newest first, and whether the chain reaches it. */
  function chainTo(callerId: number, after: number, from: number) {
    const events: ChainedEvent[] = [];
    for (const event of chainFrom(from)) {
      if (event.sequence <= after) return { events, isWhole: true };
      events.push(event);
    }
    const first = events.at(-1);
    if (first === undefined) return { events, isWhole: headOf(callerId).sequence <= after };
    return { events, isWhole: first.sequence === after + 1 };
  }

  /** Returns the first kept events of a caller after a sequence, oldest first: `limit`, or somewhat fewer. */
  function readAfter(callerId: number, after: number, limit: number): EventsAfter {
    if (headOf(callerId).sequence <= after) return { events: [], isWhole: true };
    const { events, isWhole } = chainTo(callerId, after, entryTo(callerId, after + limit));
    return { events: events.reverse().slice(0, limit).map(withoutLink), isWhole };
  }

  return {
    after: readAfter,
    /** The sequence before a caller's first event since a time, Unix milliseconds. */
    before: (callerId: number, sinceMs: number): number =>
      cursorBefore(sinceMs, 'sequence', headOf(callerId).sequence, (after) => {
        return readAfter(callerId, after, 1).events[0];
      }),
    /** Returns one event; undefined if it has expired or does not exist. */
    at: (callerId: number, sequence: number): Event | undefined => {
      const { events } = chainTo(callerId, sequence - 1, entryTo(callerId, sequence));
      const found = events.at(-1);
      return found?.sequence === sequence ? withoutLink(found) : undefined;
    },
    /** The sequence of a caller's newest event, or the end of a restore's gap; 0 if there is none. */
    newest: (callerId: number): number => headOf(callerId).sequence,
    /** The sequence of a caller's oldest kept event; undefined if there is none. */
    oldest: (callerId: number): number | undefined => readAfter(callerId, 0, 1).events[0]?.sequence,
  };
}

/**
 * Returns the cursor before the first event since a time. `next` returns the first kept event after a cursor. It is a binary
 * search, since events are in order of time, and an index of their times would add a page to each commit.
 */
function cursorBefore(
  sinceMs: number,
  kind: 'sequence' | 'position',
  newest: number,
  next: (after: number) => Event | undefined,
): number {
  let [low, high] = [0, newest];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    // Cursors have gaps: it may be far after the middle.
    const event = next(middle);
    if (event === undefined || event.atMs >= sinceMs) high = middle;
    else low = event[kind];
  }
  return low;
}

const withoutLink = ({ previous: _, ...event }: ChainedEvent): Event => event;

/** Handlers that read the feed, and the one that warns of ending holds. */
export function createEventHandlers(
  database: Database,
  events: EventReads,
  outbox: Outbox,
): Handlers<keyof EventCommands> {
  const headOf = headReader(database);
  const { selectRows, selectFirst, selectName } = prepare(database, {
    selectRows: rowsFrom(database),
    selectFirst: database.select({ first: eventLog.first }).from(eventLog).orderBy(asc(eventLog.id)).limit(1),
    selectName: database
      .select({ name: caller.name })
      .from(caller)
      .where(eq(caller.id, sql.placeholder('callerId'))),
  });
  const nameOf = (callerId: number): string => selectName.get({ callerId })?.name ?? '';
  const withCaller = (event: Event) => ({ ...event, caller: nameOf(event.callerId) });

  function* allAfter(after: number): Generator<Event> {
    for (const { first, lines } of selectRows.iterate({ position: after + 1 }))
      for (const [index, line] of lines.split('\n').entries()) {
        const { previous: _, ...event } = readLine(line);
        if (first + index > after) yield { ...event, position: first + index };
      }
  }

  const firstAfter = (after: number, limit: number): Event[] => allAfter(after).take(limit).toArray();

  const positionBefore = (sinceMs: number, newest: number): number =>
    cursorBefore(sinceMs, 'position', newest, (after) => firstAfter(after, 1)[0]);

  const pageOf = (found: readonly Event[], end: number): EventPage => ({
    events: found.map(withCaller),
    next: end,
  });

  return {
    ReadEvents: reads(({ callerId, after, sinceMs }) => {
      const newest = events.newest(callerId);
      if (after !== undefined && after > newest) throw eventsAhead(newest);
      const start = after ?? (sinceMs === undefined ? 0 : events.before(callerId, sinceMs));
      const { events: found, isWhole } = events.after(callerId, start, eventPageMax);
      if (after !== undefined && !isWhole) throw eventsExpired(events.oldest(callerId));
      return pageOf(found, found.at(-1)?.sequence ?? newest);
    }),
    ReadAllEvents: reads(({ after, sinceMs }) => {
      const newest = headOf(everybody).position;
      if (after !== undefined && after > newest) throw eventsAhead(newest);
      const oldest = selectFirst.get()?.first;
      if (after !== undefined && after + 1 < (oldest ?? newest + 1)) throw eventsExpired(oldest);
      const start = after ?? (sinceMs === undefined ? 0 : positionBefore(sinceMs, newest));
      const found = firstAfter(start, eventPageMax);
      return pageOf(found, found.at(-1)?.position ?? newest);
    }),
    WarnOfEndingHolds: writes(({ nowMs, limit }) => {
      const nowS = Math.floor(nowMs / 1_000);
      const ending = database
        .select()
        .from(escrow)
        .where(
          and(
            sql`${escrow.state} = 'FROZEN'`,
            gt(escrow.holdExpiresAtS, nowS),
            lte(escrow.holdExpiresAtS, nowS + holdWarningS),
            or(isNull(escrow.notifiedHoldEndS), ne(escrow.notifiedHoldEndS, escrow.holdExpiresAtS)),
          ),
        )
        .limit(limit)
        .all();
      for (const { id, callerId, escrowId, filingNo, state, holdExpiresAtS } of ending) {
        database.update(escrow).set({ notifiedHoldEndS: holdExpiresAtS }).where(eq(escrow.id, id)).run();
        outbox.add({ type: 'escrow.hold_expiring', callerId, atMs: nowMs, filingNo, escrowId, state });
      }
      return ending.length;
    }),
  };
}
