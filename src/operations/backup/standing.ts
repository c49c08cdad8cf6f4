import { constants } from 'node:fs';
import { access, stat } from 'node:fs/promises';
import type { RegularBackups } from '../../config/config.ts';
import { errorText } from '../../lib/file-errors.ts';
import { readBackupStatus } from './status.ts';

/** How regular backups are taken. */
export interface BackupTerms extends Pick<RegularBackups, 'folder' | 'everyMs'> {
  readonly dataDir: string;
  /** Whether there must be backups: those of a production. */
  readonly isRequired: boolean;
}

/** The state of the backups that the server or commands take. */
export interface BackupStanding {
  /** The last verified backup. */
  readonly last: { readonly file: string; readonly takenAt: string } | undefined;
  /** Says that its file, or the folder of it, no longer exists. */
  readonly missing: string | undefined;
  /** Why the server cannot take backups into its folder. */
  readonly unusable: string | undefined;
  /** Why the last attempt failed. */
  readonly failure: string | undefined;
}

/** What is wrong with the backups; a sentence without its full stop. */
export interface BackupProblem {
  readonly level: 'warning' | 'fault';
  readonly text: string;
}

/** Reads the state of the backups of a data folder. */
export async function readStanding({ dataDir, folder }: BackupTerms): Promise<BackupStanding> {
  const { last, failure } = (await readBackupStatus(dataDir)) ?? {};
  return {
    last,
    missing: last && (await whyMissing(last.file)),
    unusable: folder === undefined ? undefined : await whyUnusable(folder),
    failure: failure && `the backup of ${failure.at} failed: ${failure.reason.replace(/\.$/, '')}`,
  };
}

/**
 * What is wrong with the backups; undefined if nothing is. The last one is too old at twice the period. If backups are not
 * required, this and a failed attempt are only warnings.
 */
export function findProblem(
  { last, missing, unusable, failure }: BackupStanding,
  { folder, everyMs, isRequired }: BackupTerms,
  nowMs: number,
): BackupProblem | undefined {
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
