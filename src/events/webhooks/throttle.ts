import type { Clock } from '../../domain/clock.ts';
import type { SendingLimits } from './limits.ts';

/** Says when something may be begun, so that calls keep their speed: at any time, but so much in a time while calls wait. */
export interface Throttle {
  /** In how many milliseconds something may be begun; 0 if it may be now. */
  waitMs(): number;
  /** Notes that something is begun. */
  begin(): void;
}

/** What a pace goes by. */
export interface PaceDependencies {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** CallTransaction of others that the store has taken and not answered. */
  readonly unitsInFlight: () => number;
  readonly limits: Pick<SendingLimits, 'paceMs' | 'begunPerPace' | 'unitsQuietMax'>;
}

export function createThrottle({ clock, unitsInFlight, limits }: PaceDependencies): Throttle {
  const { paceMs, begunPerPace, unitsQuietMax } = limits;
  let endsAtMs = Number.NEGATIVE_INFINITY;
  let begun = 0;
  /** Whether calls wait in this time, and whether they did in the one before: between two transactions the store has nothing to do. */
  let [isBusy, wasBusy] = [false, false];
  return {
    waitMs: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= endsAtMs) {
        endsAtMs = nowMs + paceMs;
        begun = 0;
        [isBusy, wasBusy] = [false, isBusy];
      }
      isBusy ||= unitsInFlight() > unitsQuietMax;
      const isQuiet = !isBusy && !wasBusy;
      return isQuiet || begun < begunPerPace ? 0 : endsAtMs - nowMs;
    },
    begin: () => {
      begun += 1;
    },
  };
}
