import type { RegularBackups } from '../../config/config.ts';
import type { Clock } from '../../domain/clock.ts';
import type { Logger } from '../../lib/log.ts';
import { every } from '../../lib/timing.ts';
import type { BackupCommands } from './commands.ts';
import type { Rotated } from './rotate.ts';

/** Takes a backup in another process if the last one is old, and rotates. Rejects with the reason if it cannot. */
export type TakeIfOld = (signal: AbortSignal) => Promise<Rotated>;

/** How long after a failure the next attempt is made, in milliseconds. */
const retryMs = 15 * 60_000;

/** The regular backups of a serving process. */
export type BackupSchedule = ReturnType<typeof startBackups>;

/**
 * Takes backups every `everyMs`, the first one now if the last one is older. The child that takes them uses the wall clock.
 * The time between them is monotonic, so that setting the clock neither makes many backups nor stops them.
 */
export function startBackups(takeIfOld: TakeIfOld, everyMs: number, clock: Clock, log: Logger) {
  const cancellation = new AbortController();
  let failure: string | undefined;
  let periodMs = everyMs;

  async function take(): Promise<void> {
    const startMs = clock.monotonicMs();
    let waitMs = Math.min(everyMs, retryMs);
    try {
      const { file, takenAt, isNew, removed, broken } = await takeIfOld(cancellation.signal);
      failure = undefined;
      if (isNew) log.info({ file, removed }, 'a backup was taken');
      for (const name of broken) log.warn({ file: name }, 'an incomplete backup: look at it and remove it');
      const leftMs = Math.max(0, Date.parse(takenAt) + everyMs - clock.nowMs());
      waitMs = isNew ? everyMs : Math.min(leftMs, everyMs);
    } catch (error) {
      if (cancellation.signal.aborted) return;
      failure = error instanceof Error ? error.message : String(error);
      log.error({ reason: failure }, 'no backup could be taken; it is tried again');
    }
    // A period begins with the attempt, the wait with its end: an attempt can take hours.
    periodMs = clock.monotonicMs() - startMs + waitMs;
  }

  const repetition = every(clock, () => periodMs, take);
  void repetition.start();
  return {
    /** Why the last attempt failed; undefined if it succeeded. */
    failure: () => failure,
    /** Stops, and cancels a backup that is being taken. */
    stop: () => {
      cancellation.abort();
      return repetition.stop();
    },
  };
}

/** Takes backups by `artseal backup rotate` in a child process, when no other command runs there. */
export function inChild(
  run: BackupCommands['runInTurn'],
  { folder, keep, everyMs }: RegularBackups & { readonly folder: string },
): TakeIfOld {
  const words = ['rotate', '--into', folder, '--keep', String(keep), '--if-older-than', `${everyMs / 1000}s`];
  return async (signal) => {
    let rotated: Rotated | undefined;
    for await (const output of run(words, signal)) if (!('progress' in output)) rotated = output as Rotated;
    if (rotated === undefined) throw new Error('it was stopped');
    return rotated;
  };
}
