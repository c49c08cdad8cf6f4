import { eq, sql } from 'drizzle-orm';
import { eventRetentionS, type NewEvent } from '../../domain/event.ts';
import type { Database } from './connection.ts';
import { lineOf, readLine } from './event-lines.ts';
import { eventLog, eventMark } from './schema.ts';
import { placeholdersFor, prepareRaw } from './statement.ts';
import type { TrustedClock } from './trusted-clock.ts';

/**
 * Takes what happened and writes it as events, inside the transaction that it happens in. An effect tells; then what it told is
 * kept or dropped, as its rows are; what was kept is written once, before the COMMIT.
 */
export interface Outbox {
  tell(event: NewEvent): void;
  /** Keeps what an effect told: it is done. */
  keep(): void;
  /** Forgets what an effect told: it was undone. */
  drop(): void;
  /** Writes all that was told. */
  write(): void;
  committed(): void;
  rolledBack(): void;
  /**
   * Whose events have been committed since it was last asked: their ids. Undefined if there are none. `ANYBODY` where another
   * process wrote some; it looks for these if `looks` is true.
   */
  takeNews(looks: boolean): readonly number[] | 'ANYBODY' | undefined;
}

/** The id of the head of all events together: no caller has it. */
export const everybody = 0;

/** Events that share a row, at most: two such rows fill a page. */
const eventsPerRow = 24;

/** Every so many events of a caller, one is where its chain can be entered. */
export const eventsPerMark = 64;

/** Rows that are deleted for each transaction that writes events: twice as many as most of them add. */
const sweptPerWrite = 2;

/** Heads of callers that are remembered, at most. */
const headsMax = 10_000;

/** Callers that are told by their ids, at most; more are anybody. */
const newsMax = 1_000;

/** What a transaction wrote: events behind one position up to another. */
interface Written {
  readonly before: number;
  readonly to: number;
  readonly callers: readonly number[];
}

interface Head {
  readonly sequence: number;
  readonly position: number;
}

/** Prepares the query of the newest event of a caller. */
export function headReader({ $client: client }: Database): (callerId: number) => Head {
  // In the words of SQL, like what writes it: both are run for each caller of each transaction.
  const select = client.prepare<[number], Head>(
    'SELECT sequence, position FROM event_head WHERE caller_id = ?',
  );
  return (callerId) => select.get(callerId) ?? { sequence: 0, position: 0 };
}

/** The outbox of a database. */
export function createOutbox(database: Database, dated: Pick<TrustedClock, 'notAfter'>): Outbox {
  const headOf = headReader(database);
  const insertRow = prepareRaw(database, database.insert(eventLog).values(placeholdersFor(eventLog)));
  const insertMark = prepareRaw(database, database.insert(eventMark).values(placeholdersFor(eventMark)));
  const writeHead = database.$client.prepare<[number, number, number]>(
    'INSERT OR REPLACE INTO event_head (caller_id, sequence, position) VALUES (?, ?, ?)',
  );
  const sweep = createSweep(database);
  const pending: NewEvent[] = [];
  /** How many of these are of effects that are done. */
  let kept = 0;
  /** What this transaction wrote. */
  let written: Written | undefined;
  /** Whose events were committed and not asked for yet. */
  const news = new Set<number>();
  /** The heads of callers as of `known`, those that were needed. */
  const heads = new Map<number, Head>();
  /** Up to which position it is known whose events there are. */
  let known = headOf(everybody).position;

  /** Gives each event its places behind `before`, and says whose they are. */
  function placed(before: number): { readonly lines: string[]; readonly callers: ReadonlySet<number> } {
    if (before !== known || heads.size > headsMax) heads.clear();
    const callers = new Set<number>();
    const lines = pending.map((event, place) => {
      const { callerId } = event;
      const head = heads.get(callerId) ?? headOf(callerId);
      const [sequence, position] = [head.sequence + 1, before + 1 + place];
      if (sequence % eventsPerMark === 0) insertMark.run({ callerId, sequence, position });
      heads.set(callerId, { sequence, position });
      callers.add(callerId);
      return lineOf(event, sequence, head.position);
    });
    return { lines, callers };
  }

  return {
    tell: (event) => {
      pending.push(event);
    },
    keep: () => {
      kept = pending.length;
    },
    drop: () => {
      pending.length = kept;
    },
    write: () => {
      const newest = pending.at(-1);
      if (newest === undefined) return;
      const before = headOf(everybody).position;
      const { lines, callers } = placed(before);
      const newestAtS = Math.floor(newest.atMs / 1_000);
      for (let place = 0; place < lines.length; place += eventsPerRow) {
        const shared = lines.slice(place, place + eventsPerRow);
        const first = before + 1 + place;
        insertRow.run({ id: first + shared.length - 1, first, newestAtS, lines: shared.join('\n') });
      }
      const newestPosition = before + lines.length;
      for (const callerId of callers) {
        const { sequence, position } = heads.get(callerId) ?? headOf(callerId);
        writeHead.run(callerId, sequence, position);
      }
      writeHead.run(everybody, newestPosition, newestPosition);
      sweep(dated.notAfter(newestAtS) - eventRetentionS);
      written = { before, to: newestPosition, callers: [...callers] };
      pending.length = 0;
      kept = 0;
    },
    committed: () => {
      if (written === undefined) return;
      for (const callerId of written.callers) news.add(callerId);
      // Otherwise another process wrote some between, which is found when it is looked for.
      if (written.before === known) known = written.to;
      written = undefined;
    },
    rolledBack: () => {
      pending.length = 0;
      kept = 0;
      written = undefined;
      heads.clear();
    },
    takeNews: (looks) => {
      const position = looks ? headOf(everybody).position : known;
      const isOfOthers = position !== known || news.size > newsMax;
      if (position !== known) heads.clear();
      known = position;
      if (!isOfOthers && news.size === 0) return undefined;
      const callers = [...news];
      news.clear();
      return isOfOthers ? 'ANYBODY' : callers;
    },
  };
}

/** Prepares what deletes the oldest rows that are older than a time, Unix seconds, with the marks in them. */
function createSweep(database: Database): (beforeS: number) => void {
  const selectOldest = prepareRaw<{ id: number; newest_at_s: number }>(
    database,
    database
      .select({ id: eventLog.id, newestAtS: eventLog.newestAtS })
      .from(eventLog)
      .orderBy(eventLog.id)
      .limit(1),
  );
  const deleteRow = prepareRaw<{ lines: string }>(
    database,
    database
      .delete(eventLog)
      .where(eq(eventLog.id, sql.placeholder('id')))
      .returning({ lines: eventLog.lines }),
  );
  const deleteMark = database.$client.prepare('DELETE FROM event_mark WHERE caller_id = ? AND sequence = ?');
  return (beforeS) => {
    for (let swept = 0; swept < sweptPerWrite; swept += 1) {
      const oldest = selectOldest.get({});
      if (oldest === undefined || oldest.newest_at_s >= beforeS) return;
      for (const line of deleteRow.get(oldest)?.lines.split('\n') ?? []) {
        const { callerId, sequence } = readLine(line);
        if (sequence % eventsPerMark === 0) deleteMark.run(callerId, sequence);
      }
    }
  };
}
