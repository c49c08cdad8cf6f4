import { unavailable } from '../../domain/reason.ts';
import type { Execute } from '../../store/store.ts';

/** Unauthenticated reads of the store: how many run at the same time, and how many more wait. */
export const openReadLimits = { concurrent: 2, queued: 64 };

/**
 * Executes store requests of unauthenticated callers, a few at a time, so that they cannot delay signed calls. Throws
 * UNAVAILABLE if the queue is full.
 */
export function createOpenReads(execute: Execute, { concurrent, queued } = openReadLimits): Execute {
  let running = 0;
  const queue: (() => void)[] = [];

  return async (command) => {
    if (running < concurrent) running += 1;
    else if (queue.length >= queued) throw unavailable('Too many read the evidence log at the moment.');
    else await new Promise<void>((resolve) => queue.push(resolve));
    try {
      return await execute(command);
    } finally {
      // The next one takes over, or the number of running requests falls.
      const next = queue.shift();
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
