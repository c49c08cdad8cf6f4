import type { Clock } from '../domain/clock.ts';
import type { SendingLimits } from './limits.ts';

/** Keeps what is begun to so much in a time, so that it leaves the process to others. */
export interface Pace {
  /** In how many milliseconds something may be begun; 0 if it may be now. */
  waitMs(): number;
  /** Notes that something is begun. */
  begin(): void;
}

export function createPace(
  clock: Clock,
  { paceMs, begunPerPace }: Pick<SendingLimits, 'paceMs' | 'begunPerPace'>,
): Pace {
  let endsAtMs = Number.NEGATIVE_INFINITY;
  let begun = 0;
  return {
    waitMs: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= endsAtMs) {
        endsAtMs = nowMs + paceMs;
        begun = 0;
      }
      return begun < begunPerPace ? 0 : endsAtMs - nowMs;
    },
    begin: () => {
      begun += 1;
    },
  };
}
