import type { Clock } from '../domain/clock.ts';

/** A rate: a burst, and then one every `everyMs` milliseconds. */
export interface Rate {
  readonly burst: number;
  readonly everyMs: number;
}

/** Tolerance for rounding errors in sums of intervals, in milliseconds. */
export const toleranceMs = 1e-6;

/**
 * GCRA, the generic cell rate algorithm. It stores one number, the theoretical arrival time: when the full burst is available again. Returns
 * that time after one more at `nowMs`, which leaves it as it is if it is rejected. `excessMs` is how long a rejected one is too early.
 */
export function takeCell(arrivalMs: number | undefined, nowMs: number, { burst, everyMs }: Rate) {
  const before = Math.max(arrivalMs ?? nowMs, nowMs);
  const excessMs = before + everyMs - nowMs - everyMs * burst;
  const allowed = excessMs <= toleranceMs;
  return { allowed, arrivalMs: allowed ? before + everyMs : before, excessMs };
}

/**
 * Limits a rate for each key, and in all. The returned function takes one of a key, and returns 0; or how many whole seconds to wait, and
 * takes nothing. It remembers a key until its full burst is available again, so the rate in all also bounds its memory.
 */
export function createKeyedRates(
  clock: Pick<Clock, 'monotonicMs'>,
  { each, total }: { readonly each: Rate; readonly total: Rate },
): (key: string) => number {
  const arrivals = new Map<string, number>();
  let arrivalOfAllMs: number | undefined;
  return (key) => {
    const nowMs = clock.monotonicMs();
    for (const [known, arrivalMs] of arrivals) if (arrivalMs <= nowMs) arrivals.delete(known);
    const own = takeCell(arrivals.get(key), nowMs, each);
    const all = takeCell(arrivalOfAllMs, nowMs, total);
    if (!own.allowed || !all.allowed)
      return Math.max(
        1,
        Math.ceil(Math.max(own.allowed ? 0 : own.excessMs, all.allowed ? 0 : all.excessMs) / 1_000),
      );
    arrivals.set(key, own.arrivalMs);
    arrivalOfAllMs = all.arrivalMs;
    return 0;
  };
}
