import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { replaceFileSync } from '../../lib/replace-file.ts';
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
