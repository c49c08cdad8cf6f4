import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import type { Rotated } from './rotate.ts';

/** Backups that a serving process has taken regularly. */
export interface BackupSchedule {
  /** Why the last try failed; undefined if it did not. */
  failure(): string | undefined;
  /** Takes no more; one under way is given up. */
  stop(): Promise<void>;
}

/** Takes a backup if the last one is old, and rotates; elsewhere than in this thread. Rejects with why it cannot. */
export type TakeIfOld = (signal: AbortSignal) => Promise<Rotated>;

/** How soon it is tried again after a failure, in milliseconds. */
const retryMs = 15 * 60_000;

/**
 * Has backups taken every `everyMs`, first now if the last one is older: that was missed. Whoever takes them looks at
 * the wall clock; the times between are measured by the monotonic one, so that setting the clock neither makes many
 * backups nor stops them.
 */
export function startBackups(
  takeIfOld: TakeIfOld,
  everyMs: number,
  clock: Clock,
  log: Logger,
): BackupSchedule {
  const giveUp = new AbortController();
  let failure: string | undefined;
  let cancel = () => {};
  let underWay = Promise.resolve();

  async function run(): Promise<void> {
    let nextMs = Math.min(everyMs, retryMs);
    try {
      const { file, takenAt, isNew, removed, broken } = await takeIfOld(giveUp.signal);
      failure = undefined;
      if (isNew) log.info({ file, removed }, 'a backup was taken');
      for (const name of broken)
        log.warn({ file: name }, 'this is no whole backup: look at it and remove it');
      nextMs = isNew ? everyMs : Math.max(0, Date.parse(takenAt) + everyMs - clock.nowMs());
    } catch (error) {
      if (giveUp.signal.aborted) return;
      failure = error instanceof Error ? error.message : String(error);
      log.error({ reason: failure }, 'no backup could be taken; it is tried again');
    }
    cancel = clock.after(Math.min(nextMs, everyMs), start);
  }

  function start(): void {
    underWay = run();
  }

  start();
  return {
    failure: () => failure,
    stop: async () => {
      cancel();
      giveUp.abort();
      await underWay;
      cancel();
    },
  };
}
