import type { Clock } from '../domain/clock.ts';
import type { SendingLimits } from './limits.ts';

/**
 * Says when a request may be begun, so that calls keep their speed: any time as long as few units are at the store, and a few in each
 * while where more are, since these are calls that wait.
 */
export interface Pace {
  /** Counts a request that is to be begun now; false where it is to wait for `waitMs`. */
  begin(): boolean;
  /** How many milliseconds this while has left. */
  waitMs(): number;
}

/** What it goes by. */
export interface PaceDependencies {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Units that the store has taken and not answered. */
  readonly unitsInFlight: () => number;
  readonly limits: Pick<SendingLimits, 'unitsQuietMax' | 'beginsBusy' | 'paceMs'>;
}

export function createPace({ clock, unitsInFlight, limits }: PaceDependencies): Pace {
  const { unitsQuietMax, beginsBusy, paceMs } = limits;
  let untilMs = Number.NEGATIVE_INFINITY;
  let left = 0;
  /** Whether this while was busy, or the one before: between two transactions the store is empty for a moment. */
  let [isBusy, wasBusy] = [false, false];

  return {
    begin: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= untilMs) {
        [isBusy, wasBusy] = [false, isBusy];
        left = beginsBusy;
        untilMs = nowMs + paceMs;
      }
      isBusy ||= unitsInFlight() > unitsQuietMax;
      if (!isBusy && !wasBusy) return true;
      left -= 1;
      return left >= 0;
    },
    waitMs: () => untilMs - clock.monotonicMs(),
  };
}
