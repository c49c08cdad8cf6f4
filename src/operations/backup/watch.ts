import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { every } from '../../lib/timing.ts';
import { type BackupStanding, type BackupTerms, findProblem, readStanding } from './standing.ts';

/** Watches the backups of a data folder that the server or commands take. */
export interface BackupWatch {
  /** The state at the last look; undefined if no backup is known and none is required. */
  standing(): Pick<BackupStanding, 'last' | 'failure'> | undefined;
  /** Resolves when the last look has ended. */
  stop(): Promise<void>;
}

/** How often it reads the state, in milliseconds. */
const lookEveryMs = 10_000;

/**
 * Reads the state of the backups every ten seconds, and logs once when something is wrong and once when it is right again. It
 * leaves out failures of backups that the server takes itself: the schedule logs them.
 */
export function watchBackups(terms: BackupTerms, clock: Clock, log: Logger): BackupWatch {
  let standing: BackupStanding | undefined;
  let logged: string | undefined;
  const looks = every(
    clock,
    () => lookEveryMs,
    async () => {
      standing = await readStanding(terms);
      logProblem(standing);
    },
  );

  function logProblem(standing: BackupStanding): void {
    const isScheduled = terms.folder !== undefined;
    const { last, unusable } = standing;
    if (isScheduled && last === undefined && unusable === undefined) return;
    const own = isScheduled ? { ...standing, failure: undefined } : standing;
    const problem = findProblem(own, terms, clock.nowMs());
    if (problem?.text === logged) return;
    logged = problem?.text;
    if (problem === undefined) log.info({ file: last?.file }, 'backups are in order again');
    else
      log[problem.level === 'fault' ? 'error' : 'warn']({ reason: problem.text }, 'backups are not in order');
  }

  void looks.start();
  return {
    standing: () => {
      const { last, missing, unusable, failure = unusable ?? missing } = standing ?? {};
      const isNeeded = terms.isRequired || terms.folder !== undefined;
      return last !== undefined || failure !== undefined || isNeeded ? { last, failure } : undefined;
    },
    stop: looks.stop,
  };
}
