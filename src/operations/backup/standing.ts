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

/** What is known of the regular backups, those that commands take as well. */
export interface BackupStanding {
  /** The last one that was taken and verified. */
  readonly last: { readonly file: string; readonly takenAt: string } | undefined;
  /** That its file, or the folder of it, does not exist any more. */
  readonly missing: string | undefined;
  /** Why the server cannot take backups into its folder. */
  readonly unusable: string | undefined;
  /** Why the last try failed. */
  readonly failure: string | undefined;
}

/** What is wrong with the regular backups, in a sentence without its full stop. */
export interface BackupProblem {
  readonly level: 'warning' | 'fault';
  readonly text: string;
}

/** Reads what is known of the backups of a data folder. */
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
 * What is wrong with the backups; undefined if nothing is. A last one is too old at twice the period. That, and a try that
 * failed, is only a warning where no backups have to be taken.
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
    if (folder !== undefined) return { level: 'warning', text: `none is in ${folder} yet: serve takes one` };
    const text =
      'no verified backup is known: set ARTSEAL_BACKUP_DIR, enable artseal-backup.timer or wait for its first run, or run artseal backup rotate from cron';
    return isRequired ? { level: 'warning', text } : undefined;
  }
  if (nowMs - Date.parse(last.takenAt) > 2 * everyMs) {
    const text = `the last verified backup is of ${last.takenAt}, which is more than twice ARTSEAL_BACKUP_EVERY ago: look why none was taken since`;
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
