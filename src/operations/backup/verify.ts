import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freeBytes, megabytes } from '../../store/sqlite/durable-files.ts';
import { BackupError, type Progress } from './backup-error.ts';
import type { Manifest } from './manifest.ts';
import { checkUnpacked, type OpenBackup, openBackup, unpack } from './open.ts';

/** What was found out about a backup. */
export interface Verdict {
  readonly manifest: Manifest;
  /** What is wrong, a line each; empty if it is sound. */
  readonly faults: readonly string[];
}

/**
 * Looks at every byte of a backup: checksums, the databases by SQLite's own check, counts, the evidence hash of every
 * filing, the evidence log with all that it commits to, and the signatures of the checkpoints that it keeps. It is
 * unpacked meanwhile into a new folder, whose path begins with `into`, or into one in the folder for temporary files. Throws
 * BackupError if it cannot be opened or if there is no room.
 */
export async function verifyBackup(file: string, progress: Progress, into?: string): Promise<Verdict> {
  const backup = await openBackup(file);
  const prefix = into ?? join(tmpdir(), 'artseal-verify-');
  refuseWithoutRoom(backup, dirname(prefix), into === undefined);
  const folder = mkdtempSync(prefix);
  try {
    return { manifest: backup.manifest, faults: await faultsOf(file, backup, folder, progress) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Unpacks a backup into an empty folder and checks it: what is wrong, a line each. */
export async function faultsOf(
  file: string,
  backup: OpenBackup,
  folder: string,
  progress: Progress,
): Promise<readonly string[]> {
  const changed = await unpack(file, backup, folder, progress);
  if (changed.length > 0)
    return changed.map((name) => `${name} is not what was backed up: its SHA-256 differs`);
  return checkUnpacked(folder, backup.manifest, progress);
}

function refuseWithoutRoom({ members }: OpenBackup, folder: string, isTemporary: boolean): void {
  const needed = members.reduce((sum, { bytes }) => sum + bytes, 0);
  const free = freeBytes(folder);
  if (free >= needed) return;
  const otherwise = isTemporary ? ', or set TMPDIR to a folder on another disk' : '';
  throw new BackupError(
    `verifying needs ${megabytes(needed)} free in ${folder}, and ${megabytes(free)} are: make room${otherwise}.`,
  );
}
