import { constants, existsSync } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RegularBackups } from '../../config/config.ts';
import type { Clock } from '../../domain/clock.ts';
import { errorText } from '../../lib/file-errors.ts';
import type { Logger } from '../../lib/log.ts';
import { replaceFileSync } from '../../lib/replace-file.ts';
import { every } from '../../lib/timing.ts';
import { privateMode } from '../../store/sqlite/durable-files.ts';
import { databaseFile } from '../../store/sqlite/location.ts';

/** The result of the last `artseal backup rotate`, kept in the data folder for the server and `artseal check`. */
export interface BackupStatus {
  /** The last verified backup; `takenAt` is RFC 3339 in UTC. */
  readonly last: { readonly file: string; readonly takenAt: string } | undefined;
  /** Why and when (RFC 3339 in UTC) the last attempt failed; undefined if it succeeded. */
  readonly failure: { readonly at: string; readonly reason: string } | undefined;
}

const statusName = 'backup-status.json';

/** Reads the status of a data folder; undefined if there is no readable one. */
export async function readBackupStatus(dataDir: string): Promise<BackupStatus | undefined> {
  try {
    const { last, failure } = JSON.parse(await readFile(join(dataDir, statusName), 'utf8'));
    const status: BackupStatus = {
      last: last && { file: String(last.file), takenAt: String(last.takenAt) },
      failure: failure && { at: String(failure.at), reason: String(failure.reason) },
    };
    return last !== undefined && Number.isNaN(Date.parse(last.takenAt)) ? undefined : status;
  } catch {
    return undefined;
  }
}

/** Writes the status into a data folder that has a database. Returns when it is on disk. */
export function writeBackupStatus(dataDir: string, status: BackupStatus): void {
  if (existsSync(databaseFile(dataDir)))
    replaceFileSync(join(dataDir, statusName), `${JSON.stringify(status)}\n`, privateMode);
}

/** How regular backups are taken. */
interface BackupTerms extends Pick<RegularBackups, 'folder' | 'everyMs'> {
  readonly dataDir: string;
  /** Whether there must be backups: those of a production. */
  readonly isRequired: boolean;
}

/** The state of the backups that the server or commands take. */
type BackupStanding = Awaited<ReturnType<typeof readStanding>>;

/** Reads the state of the backups of a data folder. */
export async function readStanding({ dataDir, folder }: BackupTerms) {
  const { last, failure } = (await readBackupStatus(dataDir)) ?? {};
  return {
    last,
    /** Says that its file, or the folder of it, no longer exists. */
    missing: last && (await whyMissing(last.file)),
    /** Why the server cannot take backups into its folder. */
    unusable: folder === undefined ? undefined : await whyUnusable(folder),
    /** Why the last attempt failed. */
    failure: failure && `the backup of ${failure.at} failed: ${failure.reason.replace(/\.$/, '')}`,
  };
}

/**
 * What is wrong with the backups, a sentence without its full stop; undefined if nothing is. The last one is too old at twice the period. If backups are not
 * required, this and a failed attempt are only warnings.
 */
export function findProblem(
  { last, missing, unusable, failure }: BackupStanding,
  { folder, everyMs, isRequired }: BackupTerms,
  nowMs: number,
): { readonly level: 'warning' | 'fault'; readonly text: string } | undefined {
  const level = isRequired || folder !== undefined ? 'fault' : 'warning';
  if (unusable !== undefined) return { level, text: unusable };
  if (failure !== undefined) return { level, text: failure };
  if (last === undefined) {
    if (folder !== undefined)
      return { level: 'warning', text: `${folder} has no backup yet: serve takes one` };
    const text =
      'no verified backup is known: set ARTSEAL_BACKUP_DIR, enable artseal-backup.timer or wait for its first run, or run artseal backup rotate from cron';
    return isRequired ? { level: 'warning', text } : undefined;
  }
  if (nowMs - Date.parse(last.takenAt) > 2 * everyMs) {
    const text = `the last verified backup is of ${last.takenAt}, which is more than twice ARTSEAL_BACKUP_EVERY ago: find out why none was taken since`;
    return { level, text };
  }
  return missing === undefined ? undefined : { level: 'warning', text: missing };
}

async function whyMissing(file: string): Promise<string | undefined> {
  try {
    await stat(file);
    return undefined;
  } catch (error) {
    // A folder that this user may not enter says nothing about its files.
    if (!/^(ENOENT|ENOTDIR)$/.test((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    return `the last verified backup, ${file}, does not exist any more: mount its disk, or take a new one`;
  }
}

async function whyUnusable(folder: string): Promise<string | undefined> {
  try {
    if (!(await stat(folder)).isDirectory()) return `${folder} of ARTSEAL_BACKUP_DIR is no folder`;
    await access(folder, constants.W_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const why = errorText(error);
    return `no backup can be written to the folder of ARTSEAL_BACKUP_DIR: ${why}, or mount its disk`;
  }
}

/** How often it reads the state, in milliseconds. */
const lookEveryMs = 10_000;

/**
 * Reads the state of the backups every ten seconds, and logs once when something is wrong and once when it is right again. It
 * leaves out failures of backups that the server takes itself: the schedule logs them.
 */
export function watchBackups(terms: BackupTerms, clock: Clock, log: Logger) {
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
    /** The state at the last look; undefined if no backup is known and none is required. */
    standing: (): Pick<BackupStanding, 'last' | 'failure'> | undefined => {
      const { last, missing, unusable, failure = unusable ?? missing } = standing ?? {};
      const isNeeded = terms.isRequired || terms.folder !== undefined;
      return last !== undefined || failure !== undefined || isNeeded ? { last, failure } : undefined;
    },
    /** Resolves when the last look has ended. */
    stop: looks.stop,
  };
}
