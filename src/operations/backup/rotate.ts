import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorText } from '../../lib/file-errors.ts';
import { syncFolder } from '../../lib/replace-file.ts';
import { BackupError, firstOf } from './manifest.ts';
import { readBackupStatus, writeBackupStatus } from './standing.ts';
import { type BackupOrder, partialMark, takeBackup } from './take.ts';
import { openBackup, verifyBackup } from './verify.ts';

/** Takes a backup into a folder that keeps the last ones. */
export interface RotationOrder extends Omit<BackupOrder, 'target'> {
  /** A folder that exists. */
  readonly folder: string;
  /** How many are kept, at least 1. */
  readonly keep: number;
  /** Milliseconds. No backup is taken if the last attempt succeeded and its backup is younger; undefined to take one always. */
  readonly everyMs: number | undefined;
}

/** The result of a rotation. */
export interface Rotated {
  /** The last backup. */
  readonly file: string;
  /** RFC 3339 in UTC. */
  readonly takenAt: string;
  /** Whether this rotation took it. */
  readonly isNew: boolean;
  readonly removed: string[];
  /** Files with the name of a backup that are incomplete. They are left for a person to look at. */
  readonly broken: string[];
}

/** The number says which backup is the oldest, even if the clock was wrong. */
const namePattern = /^artseal-(\d{6,12})-\d{8}T\d{6}Z\.tar$/;

/** The name of the last damaged backup. It is not counted, and the next damaged one replaces it. */
const damagedName = 'artseal.tar.damaged';

/**
 * Takes a backup into a folder unless the last one is young enough, verifies it as `artseal backup verify` does, and then
 * removes the oldest complete backups that rotations took, except the newest `keep`. It also removes unfinished files of
 * earlier runs, and nothing else. The data folder keeps the result. Throws BackupError if the new backup is damaged, and
 * what `takeBackup` and `verifyBackup` throw; then no backup is removed.
 */
export async function rotateBackups(order: RotationOrder): Promise<Rotated> {
  const { dataDir, nowMs } = order;
  const before = await readBackupStatus(dataDir);
  try {
    const verified = before?.failure === undefined ? before?.last?.file : undefined;
    const rotated = await rotate({ ...order, folder: resolve(order.folder) }, verified);
    const { file, takenAt } = rotated;
    writeBackupStatus(dataDir, { last: { file, takenAt }, failure: undefined });
    return rotated;
  } catch (error) {
    const reason = errorText(error);
    try {
      const failure = { at: new Date(nowMs).toISOString(), reason };
      writeBackupStatus(dataDir, { last: before?.last, failure });
    } catch {
      // The disk of the data folder is full or broken. The first error is thrown, and the last backup gets older.
    }
    throw error;
  }
}

async function rotate(
  { folder, keep, everyMs, ...order }: RotationOrder,
  verified: string | undefined,
): Promise<Rotated> {
  for (const name of readdirSync(folder)) {
    const [backup = '', ...rest] = name.split(partialMark);
    if (namePattern.test(backup) && rest.length > 0) rmSync(join(folder, name), { recursive: true });
  }
  const { whole, broken } = await inspect(folder);
  const last = whole.at(-1);
  if (last !== undefined && everyMs !== undefined && isYoung(last.takenAt, order.nowMs, everyMs)) {
    const file = join(folder, last.name);
    if (file === verified) return { file, takenAt: last.takenAt, isNew: false, removed: [], broken };
  }
  const name = nameOf((keptIn(folder).at(-1)?.sequence ?? 0) + 1, order.nowMs);
  const takenAt = await takeVerified(order, folder, name);
  const removed = [...whole.map((kept) => kept.name), name].slice(0, -keep);
  for (const old of removed) rmSync(join(folder, old));
  return { file: join(folder, name), takenAt, isNew: true, removed, broken };
}

/** Takes a backup, verifies it and then gives it its name; keeps a damaged one aside. Returns the time of the backup. */
async function takeVerified(
  order: Omit<BackupOrder, 'target'>,
  folder: string,
  name: string,
): Promise<string> {
  // If this run is killed, the next one removes both.
  const partial = `${join(folder, name)}${partialMark}`;
  const target = `${partial}unverified`;
  try {
    const { takenAt } = await takeBackup({ ...order, target });
    const { faults } = await verifyBackup(target, order.progress, partial);
    const file = join(folder, faults.length === 0 ? name : damagedName);
    renameSync(target, file);
    syncFolder(folder);
    if (faults.length > 0)
      throw new BackupError(
        `the new backup is damaged, so no earlier one was removed: ${firstOf(faults)}. It is kept as ${file}: ` +
          'see docs/operate/incidents/record-changed.md.',
      );
    return takenAt;
  } finally {
    rmSync(target, { force: true });
  }
}

/** Whether a backup is younger than `everyMs`. One with a time ahead of the clock is not. */
function isYoung(takenAt: string, nowMs: number, everyMs: number): boolean {
  const ageMs = nowMs - Date.parse(takenAt);
  return ageMs >= 0 && ageMs < everyMs;
}

async function inspect(folder: string) {
  const whole: { readonly name: string; readonly takenAt: string }[] = [];
  const broken: string[] = [];
  for (const { name } of keptIn(folder)) {
    try {
      const { manifest } = await openBackup(join(folder, name));
      whole.push({ name, takenAt: manifest.takenAt });
    } catch {
      broken.push(name);
    }
  }
  return { whole, broken };
}

/** The files of a folder with the name of a backup, the oldest first. */
function keptIn(folder: string) {
  return readdirSync(folder)
    .flatMap((name) => {
      const [, digits] = namePattern.exec(name) ?? [];
      return digits === undefined ? [] : [{ name, sequence: Number(digits) }];
    })
    .sort((one, other) => one.sequence - other.sequence);
}

function nameOf(sequence: number, nowMs: number): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return `artseal-${String(sequence).padStart(6, '0')}-${time}.tar`;
}
