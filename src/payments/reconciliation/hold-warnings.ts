import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { Execute } from '../../store/store.ts';
import { reasonOf } from './reconciler.ts';

/** How often it is looked for holds that end within a day, in milliseconds. */
const lookEveryMs = 60_000;

/** Orders that are told of in one unit, at most: others wait for it. */
const toldAtOnce = 200;

/** Has callers told of holds that are about to end. */
export interface HoldWarnings {
  /** Looks now, and every minute from then on. */
  start(): Promise<void>;
  stop(): void;
}

export function createHoldWarnings(execute: Execute, clock: Clock, log: Logger): HoldWarnings {
  let isStopped = false;
  let cancel = () => {};

  async function tell(): Promise<void> {
    let told: number;
    do {
      told = await execute({ kind: 'WarnOfEndingHolds', nowMs: clock.nowMs(), limit: toldAtOnce });
    } while (told === toldAtOnce && !isStopped);
  }

  async function tellRegularly(): Promise<void> {
    await tell().catch((error) =>
      log.warn({ why: reasonOf(error) }, 'holds that are about to end cannot be told now; it is tried again'),
    );
    if (!isStopped) cancel = clock.after(lookEveryMs, () => void tellRegularly());
  }

  return {
    start: tellRegularly,
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
