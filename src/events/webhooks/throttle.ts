import type { Clock } from '../../domain/clock.ts';
import { ApiError } from '../../domain/reason.ts';
import type { Logger } from '../../lib/log.ts';
import { backoffMs } from '../../lib/timing.ts';
import type { SendingLimits } from './limits.ts';

interface ThrottleDependencies {
  readonly clock: Pick<Clock, 'monotonicMs'>;
  /** How many requests of others the store has accepted and not completed. */
  readonly requestsInFlight: () => number;
  readonly limits: Pick<SendingLimits, 'periodMs' | 'startsPerPeriod' | 'quietRequestsMax'>;
}

/** Limits how often work starts while API calls wait for the store. There is no limit while none wait. */
export function createThrottle({ clock, requestsInFlight, limits }: ThrottleDependencies) {
  const { periodMs, startsPerPeriod, quietRequestsMax } = limits;
  let endsAtMs = Number.NEGATIVE_INFINITY;
  let started = 0;
  /** Whether calls wait in this period, and whether they did in the last: between two transactions the store is idle. */
  let [isBusy, wasBusy] = [false, false];
  return {
    /** How many milliseconds to wait before work may start; 0 if it may start now. */
    waitMs: (): number => {
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
    /** Counts that work starts. */
    start: (): void => {
      started += 1;
    },
  };
}

/** See `createStoreBackoff`. */
export type StoreBackoff = ReturnType<typeof createStoreBackoff>;

/** Delays requests to a store that fails, longer after each failure. Logs when it starts to fail and when it works again. */
export function createStoreBackoff(
  clock: Pick<Clock, 'monotonicMs'>,
  log: Logger,
  backoff: SendingLimits['storeBackoff'],
) {
  let failures = 0;
  let untilMs = Number.NEGATIVE_INFINITY;
  let loggedMessage: string | undefined;
  /** How many milliseconds to wait before the next request; 0 if it may start now. */
  const waitMs = () => Math.max(0, untilMs - clock.monotonicMs());
  return {
    waitMs,
    succeeded: (): void => {
      if (failures === 0) return;
      failures = 0;
      loggedMessage = undefined;
      untilMs = Number.NEGATIVE_INFINITY;
      log.info('webhooks are sent again: the store works');
    },
    failed: (error: unknown): void => {
      // Requests that fail together count once.
      if (waitMs() > 0) return;
      failures += 1;
      untilMs = clock.monotonicMs() + backoffMs(failures, backoff);
      const why = error instanceof Error ? error.message : String(error);
      if (why === loggedMessage) return;
      loggedMessage = why;
      const isUnavailable = error instanceof ApiError && error.reason === 'UNAVAILABLE';
      if (isUnavailable) log.warn({ why }, 'webhooks wait: the store cannot be used');
      else log.error({ err: error }, 'webhooks wait: deliveries cannot be read or recorded');
    },
  };
}
