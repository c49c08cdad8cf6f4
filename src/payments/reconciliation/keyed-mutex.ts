/**
 * Lets one piece of work at a time happen for each key; what comes on top waits for its turn. How many wait is bounded
 * by those who ask: the calls under way and the orders in recovery at once.
 */
export interface KeyedMutex {
  run<T>(key: string, work: () => Promise<T>): Promise<T>;
  isBusy(key: string): boolean;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

export function createKeyedMutex(): KeyedMutex {
  const last = new Map<string, Promise<void>>();
  return {
    run: async (key, work) => {
      const before = last.get(key);
      const { promise: done, resolve } = Promise.withResolvers<void>();
      last.set(key, done);
      await before;
      try {
        return await work();
      } finally {
        if (last.get(key) === done) last.delete(key);
        resolve();
      }
    },
    isBusy: (key) => last.has(key),
    idle: async () => {
      while (last.size > 0) await Promise.all(last.values());
    },
  };
}
