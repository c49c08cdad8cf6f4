/** Something has to be read before. */
export class Needed extends Error {
  /** Reads it, so that it is there when it is needed again. */
  readonly read: () => Promise<void>;
  constructor(what: string, read: () => Promise<void>) {
    super(`${what} was not read.`);
    this.read = read;
  }
}

/** Waits until all have ended, also if one fails. Then throws the first error. */
export async function all(running: readonly Promise<unknown>[]): Promise<void> {
  const ended = await Promise.allSettled(running);
  for (const each of ended) if (each.status === 'rejected') throw each.reason;
}

/**
 * Runs `work`, and again each time after what it needs was read. The result is there at once if nothing is needed. So the rules of
 * the log and of filings are the same functions for all engines, and wait for nothing. `work` changes nothing before it has read
 * everything.
 */
export function whenRead<T>(work: () => T): T | Promise<Awaited<T>> {
  try {
    return work();
  } catch (error) {
    if (error instanceof Needed) return error.read().then(() => whenRead(work)) as Promise<Awaited<T>>;
    throw error;
  }
}
