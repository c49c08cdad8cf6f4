import { setTimeout as delay } from 'node:timers/promises';

const pollEveryMs = 20;

/** Asks until the answer is neither undefined nor false, and returns it; rejects if that takes over `limitMs`. */
export async function eventually<T>(
  what: string,
  limitMs: number,
  ask: () => T | undefined | false | Promise<T | undefined | false>,
): Promise<T> {
  const giveUpAtMs = performance.now() + limitMs;
  for (;;) {
    const answer = await ask();
    if (answer !== undefined && answer !== false) return answer;
    if (performance.now() > giveUpAtMs) throw new Error(`${what}: not within ${limitMs} ms`);
    await delay(pollEveryMs);
  }
}
