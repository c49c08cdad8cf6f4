import Sqlite from 'better-sqlite3';
import type { Clock } from '../../domain/clock.ts';

/** How long to wait until something is tried again for which the disk had no room, in milliseconds. */
const diskRetryMs = 1_000;

/**
 * What one run of the simulator does by itself, and ends with it. Where the books cannot be written now, it
 * is tried again later: nobody waits for it, and the process must not end for it.
 */
export interface Timers {
  /** As of the clock, until they are called off; nothing happens then. */
  after(ms: number, callback: () => void): () => void;
  /** Does something now. */
  now(callback: () => void): void;
  /** Calls off those that wait, and all to come. */
  end(): void;
}

/** Makes timers of a clock. */
export function createTimers(clock: Clock): Timers {
  const waiting = new Set<() => void>();
  let ended = false;

  function after(ms: number, callback: () => void): () => void {
    if (ended) return () => {};
    const cancel = clock.after(ms, () => {
      waiting.delete(cancel);
      now(callback);
    });
    waiting.add(cancel);
    return () => {
      waiting.delete(cancel);
      cancel();
    };
  }
  function now(callback: () => void): void {
    if (ended) return;
    try {
      callback();
    } catch (error) {
      if (!(error instanceof Sqlite.SqliteError)) throw error;
      after(diskRetryMs, callback);
    }
  }

  return {
    after,
    now,
    end: () => {
      ended = true;
      for (const cancel of waiting) cancel();
      waiting.clear();
    },
  };
}
