import { unavailable } from '../../domain/reason.ts';
import type { Execute } from '../../store/store.ts';

/** What anybody may have read of the log at a time, and how many more may wait for their turn. */
export const openReadLimits = { atOnce: 2, waiting: 64 };

/**
 * Carries out commands for those who need no signature: few at a time, so that they cannot hold up those who sign. Throws
 * UNAVAILABLE where too many wait already.
 */
export function createOpenReads(execute: Execute, { atOnce, waiting } = openReadLimits): Execute {
  let underWay = 0;
  const queue: (() => void)[] = [];

  async function takeTurn(): Promise<void> {
    if (underWay < atOnce) {
      underWay += 1;
      return;
    }
    if (queue.length >= waiting) throw unavailable('Too many read the evidence log at the moment.');
    const { promise, resolve } = Promise.withResolvers<void>();
    queue.push(resolve);
    await promise;
  }

  /** Whoever waited longest takes the turn over. */
  function passTurn(): void {
    const next = queue.shift();
    if (next === undefined) underWay -= 1;
    else next();
  }

  return async (command) => {
    await takeTurn();
    try {
      return await execute(command);
    } finally {
      passTurn();
    }
  };
}
