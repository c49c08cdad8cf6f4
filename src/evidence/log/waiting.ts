import type { Clock } from '../../domain/clock.ts';
import type { PublishedCheckpoint } from './publication.ts';

/** How many may wait for a checkpoint at a time; more are told at once that there is none yet. */
const waitingMax = 1_000;

/** Those who wait for a checkpoint that covers a leaf. */
export interface Waiting {
  /** Resolves to the next checkpoint that covers it; to undefined if none does within so many milliseconds. */
  until(leafIndex: number, withinMs: number): Promise<PublishedCheckpoint | undefined>;
  /** Tells it to those whose leaves it covers. */
  tell(checkpoint: PublishedCheckpoint): void;
}

export function createWaiting(clock: Clock): Waiting {
  const waiting = new Set<{
    leafIndex: number;
    resolve(checkpoint: PublishedCheckpoint | undefined): void;
  }>();
  return {
    until: async (leafIndex, withinMs) => {
      if (waiting.size >= waitingMax) return undefined;
      const { promise, resolve } = Promise.withResolvers<PublishedCheckpoint | undefined>();
      const one = { leafIndex, resolve };
      waiting.add(one);
      const cancel = clock.after(withinMs, () => resolve(undefined));
      try {
        return await promise;
      } finally {
        cancel();
        waiting.delete(one);
      }
    },
    tell: (checkpoint) => {
      for (const { leafIndex, resolve } of waiting) if (leafIndex < checkpoint.size) resolve(checkpoint);
    },
  };
}
