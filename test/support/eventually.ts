import { setTimeout as delay } from 'node:timers/promises';

const pollEveryMs = 20;

/**
 * Asks until the answer is neither undefined nor false, and returns it; rejects if that is not so of what is asked after
 * `limitMs` either. However slow the machine, it is asked once when the time is over.
 */
export async function eventually<T>(
  what: string,
  limitMs: number,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const giveUpAtMs = performance.now() + limitMs;
  for (;;) {
    const isLast = performance.now() > giveUpAtMs;
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (isLast) throw new Error(`${what}: not within ${limitMs} ms`);
    await delay(pollEveryMs);
  }
}
