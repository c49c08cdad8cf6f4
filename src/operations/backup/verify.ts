import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { freeBytes, megabytes } from '../../store/sqlite/durable-files.ts';
import { BackupError, type Progress } from './backup-error.ts';
import type { Manifest } from './manifest.ts';
import { checkUnpacked, type OpenBackup, openBackup, unpack } from './open.ts';

/** The result of a verification. */
export interface Verdict {
  readonly manifest: Manifest;
  /** One line a fault; empty if the backup is sound. */
  readonly faults: readonly string[];
}

/**
 * Checks every byte of a backup: checksums, the databases by SQLite's own check, counts, the evidence hash of every filing,
 * the evidence log with every record that it commits to, and the signatures of its checkpoints. Meanwhile the backup is
 * unpacked into a new folder, whose path begins with `into` or with the folder for temporary files. Throws BackupError if
 * it cannot be opened or if there is no room.
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

/** Unpacks a backup into an empty folder and checks it. Returns one line a fault. */
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
