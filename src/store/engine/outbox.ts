import type { NewEvent } from '../../domain/event.ts';

/** The events of a transaction. Those of a command are kept or dropped together with its rows. */
export function createPendingEvents() {
  const events: NewEvent[] = [];
  /** How many of them belong to commands that are done. */
  let kept = 0;
  return {
    events: events as readonly NewEvent[],
    add: (event: NewEvent): void => {
      events.push(event);
    },
    /** Keeps the events of a command that is done. */
    keep: (): void => {
      kept = events.length;
    },
    /** Drops the events of a command that was undone. */
    drop: (): void => {
      events.length = kept;
    },
    clear: (): void => {
      events.length = kept = 0;
    },
  };
}

/** The callers with committed events that nobody was notified of. */
export function createEventNews() {
  const callers = new Set<number>();
  return {
    add: (some: Iterable<number>): void => {
      for (const caller of some) callers.add(caller);
    },
    /** Returns and removes their ids; undefined if there are none. */
    take: (): readonly number[] | undefined => {
      if (callers.size === 0) return undefined;
      const taken = [...callers];
      callers.clear();
      return taken;
    },
  };
}
