import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { every } from '../../lib/timing.ts';
import type { Execute } from '../../store/store.ts';
import { reasonOf } from './order-updates.ts';

/** How often to look for holds that end within a day, in milliseconds. */
const checkEveryMs = 60_000;

/** Orders of one store request. Other requests wait for it. */
const batchMax = 200;

/** Sends the events that warn callers of holds that end soon. */
export interface HoldWarnings {
  /** Checks now, and every minute from then on. */
  start(): Promise<void>;
  stop(): void;
}

export function createHoldWarnings(execute: Execute, clock: Clock, log: Logger): HoldWarnings {
  let isStopped = false;

  async function warn(): Promise<void> {
    let warned: number;
    do {
      warned = await execute({ kind: 'WarnOfEndingHolds', nowMs: clock.nowMs(), limit: batchMax });
    } while (warned === batchMax && !isStopped);
  }

  const checks = every(
    clock,
    () => checkEveryMs,
    () =>
      warn().catch((error) =>
        log.warn({ why: reasonOf(error) }, 'holds that end soon cannot be read now; it is tried again'),
      ),
  );
  return {
    start: checks.start,
    stop: () => {
      isStopped = true;
      void checks.stop();
    },
  };
}
