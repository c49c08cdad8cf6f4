import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { ApiError } from '../../domain/reason.ts';
import { backoffMs } from '../../lib/timing.ts';
import type { Backoff } from './limits.ts';

/** Delays requests to a store that fails, longer after each failure. Logs when it starts to fail and when it works again. */
export interface StoreBackoff {
  /** How many milliseconds to wait before the next request; 0 if it may start now. */
  waitMs(): number;
  succeeded(): void;
  failed(error: unknown): void;
}

export function createStoreBackoff(
  clock: Pick<Clock, 'monotonicMs'>,
  log: Logger,
  backoff: Backoff,
): StoreBackoff {
  let failures = 0;
  let untilMs = Number.NEGATIVE_INFINITY;
  let loggedMessage: string | undefined;
  const waitMs = () => Math.max(0, untilMs - clock.monotonicMs());
  return {
    waitMs,
    succeeded: () => {
      if (failures === 0) return;
      failures = 0;
      loggedMessage = undefined;
      untilMs = Number.NEGATIVE_INFINITY;
      log.info('webhooks are sent again: the store works');
    },
    failed: (error) => {
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
