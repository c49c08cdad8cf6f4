import type { Clock } from '../../domain/clock.ts';
import type { SendingLimits } from './limits.ts';

/** Limits how often work starts while API calls wait for the store. There is no limit while none wait. */
export interface Throttle {
  /** How many milliseconds to wait before work may start; 0 if it may start now. */
  waitMs(): number;
  /** Counts that work starts. */
  start(): void;
}

interface ThrottleDependencies {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** How many requests of others the store has accepted and not completed. */
  readonly requestsInFlight: () => number;
  readonly limits: Pick<SendingLimits, 'periodMs' | 'startsPerPeriod' | 'quietRequestsMax'>;
}

export function createThrottle({ clock, requestsInFlight, limits }: ThrottleDependencies): Throttle {
  const { periodMs, startsPerPeriod, quietRequestsMax } = limits;
  let endsAtMs = Number.NEGATIVE_INFINITY;
  let started = 0;
  /** Whether calls wait in this period, and whether they did in the last: between two transactions the store is idle. */
  let [isBusy, wasBusy] = [false, false];
  return {
    waitMs: () => {
      const nowMs = clock.monotonicMs();
      if (nowMs >= endsAtMs) {
        endsAtMs = nowMs + periodMs;
        started = 0;
        [isBusy, wasBusy] = [false, isBusy];
      }
      isBusy ||= requestsInFlight() > quietRequestsMax;
      const isQuiet = !isBusy && !wasBusy;
      return isQuiet || started < startsPerPeriod ? 0 : endsAtMs - nowMs;
    },
    start: () => {
      started += 1;
    },
  };
}
