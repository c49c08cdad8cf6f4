import { setTimeout as delay } from 'node:timers/promises';

const pollEveryMs = 20;

/**
 * Calls `look` until its result is neither undefined nor false, and returns the result. Rejects after `limitMs`; the last call
 * is made when that time is over, however slow the machine.
 */
export async function eventually<T>(
  what: string,
  limitMs: number,
  look: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const giveUpAtMs = performance.now() + limitMs;
  for (;;) {
    const isLast = performance.now() > giveUpAtMs;
    const found = await look();
    if (found !== undefined && found !== false) return found;
    if (isLast) throw new Error(`${what}: not within ${limitMs} ms`);
    await delay(pollEveryMs);
  }
}
