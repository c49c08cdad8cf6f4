import { existsSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { privateMode, syncFile, syncFolder } from '../../store/sqlite/durable-files.ts';
import { databaseFile } from '../../store/sqlite/location.ts';

/**
 * The result of the last `artseal backup rotate`. The command writes it into the data folder, where the server and
 * `artseal check` read it, so that both know of backups that a timer or cron takes.
 */
export interface BackupStatus {
  /** The last backup that was taken and verified, with when it was taken (RFC 3339 in UTC); undefined if none is known. */
  readonly last: { readonly file: string; readonly takenAt: string } | undefined;
  /** Why the last try failed, and when (RFC 3339 in UTC); undefined if it did not. */
  readonly failure: { readonly at: string; readonly reason: string } | undefined;
}

/** The file of the data folder that has it. */
const statusName = 'backup-status.json';

/** Reads the status in a data folder; undefined if there is none that can be read. */
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

/** Writes the status into a data folder that has a database, whole or not at all; returns when it is on disk. */
export function writeBackupStatus(dataDir: string, status: BackupStatus): void {
  if (!existsSync(databaseFile(dataDir))) return;
  const file = join(dataDir, statusName);
  const partial = `${file}.new`;
  try {
    writeFileSync(partial, `${JSON.stringify(status)}\n`, { mode: privateMode });
    syncFile(partial);
    renameSync(partial, file);
    syncFolder(dataDir);
  } finally {
    rmSync(partial, { force: true });
  }
}
