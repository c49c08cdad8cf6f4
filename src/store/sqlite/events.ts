import { and, asc, eq, gt, gte, sql } from 'drizzle-orm';
import type { Event } from '../../domain/event.ts';
import type { EventReads, EventsAfter } from '../engine/parts.ts';
import { eventHead, eventLog, eventMark, webhook } from '../engine/schema.ts';
import { named } from '../engine/statement.ts';
import { isHealthy } from '../handlers/webhooks.ts';
import { everybody, headReader, readLine } from './outbox.ts';
import { prepare, type SqliteDatabase } from './statement.ts';

/** An event, with the position of the caller's previous one. */
type ChainedEvent = ReturnType<typeof readLine> & Event;

/** The rows from the one with a position, or from the next one. */
const rowsFrom = (database: SqliteDatabase) =>
  database
    .select({ id: eventLog.id, first: eventLog.first, lines: eventLog.lines })
    .from(eventLog)
    .where(gte(eventLog.id, sql.placeholder('position')))
    .orderBy(asc(eventLog.id));

const prepareReads = (database: SqliteDatabase) =>
  prepare(database, {
    selectRows: rowsFrom(database),
    selectFirst: database.select({ first: eventLog.first }).from(eventLog).orderBy(asc(eventLog.id)).limit(1),
    selectLagging: database
      .select(named({ callerId: webhook.callerId, cursor: webhook.cursor }))
      .from(webhook)
      .innerJoin(eventHead, eq(eventHead.callerId, webhook.callerId))
      .where(and(isHealthy, gt(eventHead.sequence, webhook.cursor)))
      .limit(sql.placeholder('limit')),
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

/** Reads the events of callers: follows their chains. */
export function createEventReads(database: SqliteDatabase): EventReads {
  const headOf = headReader(database);
  const { selectRows, selectFirst, selectMark, selectLagging } = prepareReads(database);

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

  function readAfter(callerId: number, after: number, limit: number): EventsAfter {
    if (headOf(callerId).sequence <= after) return { events: [], isWhole: true };
    const { events: chain, isWhole } = chainTo(callerId, after, entryTo(callerId, after + limit));
    const first = chain.at(-1);
    // After expired events, the chain has to be entered later for a full page.
    if (!isWhole && first !== undefined)
      return { events: readAfter(callerId, first.sequence - 1, limit).events, isWhole };
    return { events: chain.reverse().slice(0, limit).map(withoutLink), isWhole };
  }

  function* allAfter(after: number): Generator<Event> {
    for (const { first, lines } of selectRows.iterate({ position: after + 1 }))
      for (const [index, line] of lines.split('\n').entries()) {
        const { previous: _, ...event } = readLine(line);
        if (first + index > after) yield { ...event, position: first + index };
      }
  }

  const afterPosition = (after: number, limit: number): Event[] => allAfter(after).take(limit).toArray();
  const newestPosition = (): number => headOf(everybody).position;

  return {
    after: readAfter,
    before: (callerId, sinceMs) =>
      cursorBefore(sinceMs, 'sequence', headOf(callerId).sequence, (after) => {
        return readAfter(callerId, after, 1).events[0];
      }),
    at: (callerId, sequence) => {
      const { events } = chainTo(callerId, sequence - 1, entryTo(callerId, sequence));
      const found = events.at(-1);
      return found?.sequence === sequence ? withoutLink(found) : undefined;
    },
    newest: (callerId) => headOf(callerId).sequence,
    oldest: (callerId) => readAfter(callerId, 0, 1).events[0]?.sequence,
    afterPosition,
    positionBefore: (sinceMs) =>
      cursorBefore(sinceMs, 'position', newestPosition(), (after) => afterPosition(after, 1)[0]),
    newestPosition,
    oldestPosition: () => selectFirst.get()?.first,
    lagging: (limit) => selectLagging.all({ limit }),
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
