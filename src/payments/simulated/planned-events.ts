import type Sqlite from 'better-sqlite3';
import type { Coming, MoneyEvent } from './course.ts';

/** An event whose time has come. */
export interface DueEvent {
  readonly holdId: string;
  readonly event: MoneyEvent;
}

/** What is to happen to the money in the books, whoever asks. The verbs that write run inside the transaction of a change. */
export interface PlannedEvents {
  /** Plans events, counted from `nowMs`, Unix milliseconds. */
  add(holdId: string, coming: readonly Coming[], nowMs: number): void;
  /** Takes those whose time has come off the plan, in their order. */
  takeDue(nowMs: number): DueEvent[];
  /** When the next one is due; undefined if there is none. */
  nextMs(): number | undefined;
}

/** Prepares the statements of the plan. */
export function createPlannedEvents(connection: Sqlite.Database): PlannedEvents {
  const insert = connection.prepare('INSERT INTO planned_event (hold_id, event, at_ms) VALUES (?, ?, ?)');
  const selectDue = connection.prepare<[number], DueEvent>(
    'SELECT hold_id AS holdId, event FROM planned_event WHERE at_ms <= ? ORDER BY at_ms, id',
  );
  const deleteDue = connection.prepare('DELETE FROM planned_event WHERE at_ms <= ?');
  const selectNext = connection
    .prepare<[], number>('SELECT at_ms FROM planned_event ORDER BY at_ms LIMIT 1')
    .pluck();
  return {
    add: (holdId, coming, nowMs) => {
      for (const { event, afterMs } of coming) insert.run(holdId, event, nowMs + afterMs);
    },
    takeDue: (nowMs) => {
      const due = selectDue.all(nowMs);
      if (due.length > 0) deleteDue.run(nowMs);
      return due;
    },
    nextMs: () => selectNext.get(),
  };
}
