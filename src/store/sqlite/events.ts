import { and, asc, eq, gt, gte, isNull, lte, ne, or, sql } from 'drizzle-orm';
import { type Event, eventsAhead, eventsExpired, holdWarningS } from '../../domain/event.ts';
import { type EventCommands, type EventPage, eventPageMax } from '../event-commands.ts';
import type { Database } from './connection.ts';
import { type LinedEvent, readLine } from './event-lines.ts';
import { type Handlers, reads, writes } from './handlers.ts';
import { everybody, headReader, type Outbox } from './outbox.ts';
import { caller, escrow, eventLog, eventMark } from './schema.ts';
import { prepareRaw } from './statement.ts';

/** Reads the events of a database. */
export interface EventReads {
  /** Events of a caller behind a sequence that are kept, oldest first: the first `limit` of them, or somewhat fewer. */
  behind(callerId: number, after: number, limit: number): EventsBehind;
  /** One of them; undefined if it is not kept, or never was. */
  at(callerId: number, sequence: number): Event | undefined;
  /** The sequence of the newest event of a caller, or that before the gap of a restore; 0 if there was none. */
  newest(callerId: number): number;
  /** The sequence of the oldest event of a caller that is kept; undefined if none is. */
  oldest(callerId: number): number | undefined;
}

/** Events behind a sequence. */
export interface EventsBehind {
  readonly events: readonly Event[];
  /** Whether none that was between the sequence and these is gone. */
  readonly isWhole: boolean;
}

interface EventRow {
  readonly id: number;
  readonly first: number;
  readonly lines: string;
}

type ChainedEvent = LinedEvent & Event;

/** Prepares the query of the rows from the one on that has a position, or is the first behind it. */
const createRowsFrom = (database: Database) =>
  prepareRaw<EventRow>(
    database,
    database
      .select({ id: eventLog.id, first: eventLog.first, lines: eventLog.lines })
      .from(eventLog)
      .where(gte(eventLog.id, sql.placeholder('position')))
      .orderBy(asc(eventLog.id)),
  );

/** Prepares the statements that follow the chains of callers. */
export function createEventReads(database: Database): EventReads {
  const headOf = headReader(database);
  const selectRows = createRowsFrom(database);
  const selectMark = prepareRaw<{ position: number }>(
    database,
    database
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
  );

  /** The chain of a caller from one of its events backwards, as far as it is kept. */
  function* chainFrom(position: number): Generator<ChainedEvent> {
    let row: EventRow | undefined;
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

  /** Where the chain of a caller is entered for the event of a sequence, or for the first behind it. */
  const entryTo = (callerId: number, sequence: number): number =>
    selectMark.get({ callerId, sequence })?.position ?? headOf(callerId).position;

  /** Events behind a sequence, newest first; and whether the chain reaches it. */
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

  function behind(callerId: number, after: number, limit: number): EventsBehind {
    if (headOf(callerId).sequence <= after) return { events: [], isWhole: true };
    const { events, isWhole } = chainTo(callerId, after, entryTo(callerId, after + limit));
    return { events: events.reverse().slice(0, limit).map(withoutLink), isWhole };
  }

  return {
    behind,
    at: (callerId, sequence) => {
      const { events } = chainTo(callerId, sequence - 1, entryTo(callerId, sequence));
      const found = events.at(-1);
      return found?.sequence === sequence ? withoutLink(found) : undefined;
    },
    newest: (callerId) => headOf(callerId).sequence,
    oldest: (callerId) => behind(callerId, 0, 1).events[0]?.sequence,
  };
}

const withoutLink = ({ previous: _, ...event }: ChainedEvent): Event => event;

/** Handlers of what is read of events, and of those that nothing else tells. */
export function createEventHandlers(
  database: Database,
  events: EventReads,
  outbox: Outbox,
): Handlers<keyof EventCommands> {
  const headOf = headReader(database);
  const nameOf = createNames(database);
  const selectRows = createRowsFrom(database);
  const selectFirst = prepareRaw<{ first: number }>(
    database,
    database.select({ first: eventLog.first }).from(eventLog).orderBy(asc(eventLog.id)).limit(1),
  );
  const told = (event: Event) => ({ ...event, caller: nameOf(event.callerId) });

  function* allBehind(after: number): Generator<Event> {
    for (const { first, lines } of selectRows.iterate({ position: after + 1 }))
      for (const [place, line] of lines.split('\n').entries()) {
        const { previous: _, ...event } = readLine(line);
        if (first + place > after) yield { ...event, position: first + place };
      }
  }

  const pageOf = (found: readonly Event[], end: number): EventPage => ({
    events: found.map(told),
    next: end,
  });

  return {
    ReadEvents: reads(({ callerId, after }) => {
      const newest = events.newest(callerId);
      if (after !== undefined && after > newest) throw eventsAhead(newest);
      const { events: found, isWhole } = events.behind(callerId, after ?? 0, eventPageMax);
      if (after !== undefined && !isWhole) throw eventsExpired(events.oldest(callerId));
      return pageOf(found, found.at(-1)?.sequence ?? newest);
    }),
    ReadAllEvents: reads(({ after }) => {
      const newest = headOf(everybody).position;
      if (after !== undefined && after > newest) throw eventsAhead(newest);
      const oldest = selectFirst.get({})?.first;
      if (after !== undefined && after + 1 < (oldest ?? newest + 1)) throw eventsExpired(oldest);
      const found = allBehind(after ?? 0)
        .take(eventPageMax)
        .toArray();
      return pageOf(found, found.at(-1)?.position ?? newest);
    }),
    TellEndingHolds: writes(({ nowMs, limit }) => {
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
        outbox.tell({ type: 'escrow.hold_expiring', callerId, atMs: nowMs, filingNo, escrowId, state });
      }
      return ending.length;
    }),
  };
}

/** Names of callers, which never change. */
function createNames(database: Database): (callerId: number) => string {
  const select = prepareRaw<{ name: string }>(
    database,
    database
      .select({ name: caller.name })
      .from(caller)
      .where(eq(caller.id, sql.placeholder('callerId'))),
  );
  return (callerId) => select.get({ callerId })?.name ?? '';
}
