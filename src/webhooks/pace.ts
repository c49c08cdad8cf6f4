import type { Clock } from '../domain/clock.ts';
import type { SendingLimits } from './limits.ts';

/**
 * Says when a request may be begun, so that calls keep their speed: any time as long as few units are at the store, and a few in each
 * while where more are, since these are calls that wait.
 */
export interface Pace {
  /** In how many milliseconds a request may be begun; 0 if it may be now. */
  waitMs(): number;
  /** Notes that one is begun. */
  begin(): void;
}

/** What it goes by. */
export interface PaceDependencies {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** Units that the store has taken and not answered. */
  readonly unitsInFlight: () => number;
  readonly limits: Pick<SendingLimits, 'unitsQuietMax' | 'begunPerPace' | 'paceMs'>;
}

export function createPace({ clock, unitsInFlight, limits }: PaceDependencies): Pace {
  const { unitsQuietMax, begunPerPace, paceMs } = limits;
  let untilMs = Number.NEGATIVE_INFINITY;
  let begun = 0;
  /** Whether this while was busy, or the one before: between two transactions the store is empty for a moment. */
  let [isBusy, wasBusy] = [false, false];

  return {
    waitMs: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= untilMs) {
        [isBusy, wasBusy] = [false, isBusy];
        begun = 0;
        untilMs = nowMs + paceMs;
      }
      isBusy ||= unitsInFlight() > unitsQuietMax;
      const isPaced = isBusy || wasBusy;
      return isPaced && begun >= begunPerPace ? untilMs - nowMs : 0;
    },
    begin: () => {
      begun += 1;
    },
  };
}
