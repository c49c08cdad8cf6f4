import type { Logger } from 'pino';
import type { Clock } from '../../domain/clock.ts';
import { type BackupStanding, type BackupTerms, findProblem, readStanding } from './standing.ts';

/** Follows the backups of a data folder, those that commands take as well. */
export interface BackupWatch {
  /** As of the last look; undefined if no backup is known and none has to be. */
  standing(): Pick<BackupStanding, 'last' | 'failure'> | undefined;
  stop(): void;
}

/** How often it looks, in milliseconds. */
const lookEveryMs = 10_000;

/**
 * Looks every ten seconds how the backups stand, and logs once what is wrong and once when it is right again. A failure of
 * backups that the server takes itself is left out: the schedule logs it.
 */
export function watchBackups(terms: BackupTerms, clock: Clock, log: Logger): BackupWatch {
  let standing: BackupStanding | undefined;
  let logged: string | undefined;
  let isStopped = false;
  let cancel = () => {};

  async function look(): Promise<void> {
    standing = await readStanding(terms);
    if (isStopped) return;
    logProblem(standing);
    cancel = clock.after(lookEveryMs, () => void look());
  }

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

  void look();
  return {
    standing: () => {
      const { last, missing, unusable, failure = unusable ?? missing } = standing ?? {};
      const isNeeded = terms.isRequired || terms.folder !== undefined;
      return last !== undefined || failure !== undefined || isNeeded ? { last, failure } : undefined;
    },
    stop: () => {
      isStopped = true;
      cancel();
    },
  };
}
