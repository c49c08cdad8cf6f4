import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setPriority, tmpdir } from 'node:os';
import { text } from 'node:stream/consumers';
import type { Logger } from 'pino';
import type { RegularBackups } from '../../config/config.ts';
import type { Clock } from '../../domain/clock.ts';
import { ownCommand } from '../../packaging/packaged-files.ts';
import type { Rotated } from './rotate.ts';

/** The regular backups of a serving process. */
export interface BackupSchedule {
  /** Why the last attempt failed; undefined if it succeeded. */
  failure(): string | undefined;
  /** Stops, and cancels a backup that is being taken. */
  stop(): Promise<void>;
}

/** Takes a backup in another process if the last one is old, and rotates. Rejects with the reason if it cannot. */
export type TakeIfOld = (signal: AbortSignal) => Promise<Rotated>;

/** How long after a failure the next attempt is made, in milliseconds. */
const retryMs = 15 * 60_000;

/**
 * Takes backups every `everyMs`, the first one now if the last one is older. The child that takes them uses the wall clock.
 * The time between them is monotonic, so that setting the clock neither makes many backups nor stops them.
 */
export function startBackups(
  takeIfOld: TakeIfOld,
  everyMs: number,
  clock: Clock,
  log: Logger,
): BackupSchedule {
  const cancellation = new AbortController();
  let failure: string | undefined;
  let cancel = () => {};
  let underWay = Promise.resolve();

  async function run(): Promise<void> {
    let nextMs = Math.min(everyMs, retryMs);
    try {
      const { file, takenAt, isNew, removed, broken } = await takeIfOld(cancellation.signal);
      failure = undefined;
      if (isNew) log.info({ file, removed }, 'a backup was taken');
      for (const name of broken) log.warn({ file: name }, 'an incomplete backup: look at it and remove it');
      nextMs = isNew ? everyMs : Math.max(0, Date.parse(takenAt) + everyMs - clock.nowMs());
    } catch (error) {
      if (cancellation.signal.aborted) return;
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
      cancellation.abort();
      await underWay;
      cancel();
    },
  };
}

/** How long one backup may take, in milliseconds: six hours. */
const limitMs = 6 * 3_600_000;
/** How long a stopped child may clean up, in milliseconds. */
const cleanUpMs = 1_000;
/** Lower priority than the service. */
const niceness = 10;

/**
 * Takes backups by `artseal backup rotate` in a process of its own, so that neither a slow disk nor the work blocks a thread
 * of this process. The child receives the data folder and the folder for temporary files, from which the executable loads
 * SQLite, and no secret.
 */
export function inChild(
  dataDir: string,
  { folder, keep, everyMs }: RegularBackups & { readonly folder: string },
  [program = '', ...words]: readonly string[] = ownCommand(),
): TakeIfOld {
  const options = [
    '--into',
    folder,
    '--keep',
    String(keep),
    '--if-older-than',
    `${everyMs / 1000}s`,
    '--json',
  ];
  return async (signal) => {
    const child = spawn(program, [...words, 'backup', 'rotate', ...options], {
      env: { ARTSEAL_DATA_DIR: dataDir, TMPDIR: tmpdir() },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
    const stop = () => end(child);
    const limit = setTimeout(stop, limitMs);
    signal.addEventListener('abort', stop);
    try {
      lower(child);
      const [output, errors, [code, killedBy]] = await Promise.all([
        text(child.stdout),
        text(child.stderr),
        ended,
      ]);
      if (code !== 0) throw new Error(errors.trim() || `it ended with ${code ?? killedBy}`);
      return JSON.parse(output) as Rotated;
    } finally {
      clearTimeout(limit);
      signal.removeEventListener('abort', stop);
    }
  };
}

/** Ends a child. It has a moment to remove unfinished files. */
function end(child: ChildProcess): void {
  child.kill('SIGTERM');
  const force = setTimeout(() => child.kill('SIGKILL'), cleanUpMs);
  child.once('close', () => clearTimeout(force));
}

function lower({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) setPriority(pid, niceness);
  } catch {
    // The child has ended already, or the system has no priorities.
  }
}
