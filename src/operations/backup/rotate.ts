import { readdirSync, renameSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { errorText } from '../../lib/file-errors.ts';
import { syncFolder } from '../../lib/replace-file.ts';
import { BackupError } from './backup-error.ts';
import { openBackup } from './open.ts';
import { readBackupStatus, writeBackupStatus } from './status.ts';
import { type BackupOrder, partialMark, takeBackup } from './take.ts';
import { verifyBackup } from './verify.ts';

/** A backup is to be taken into a folder that keeps the last ones. */
export interface RotationOrder extends Omit<BackupOrder, 'target'> {
  /** A folder that exists. */
  readonly folder: string;
  /** How many are kept, at least 1. */
  readonly keep: number;
  /** None is taken if the last try did not fail and the last one is verified and younger, in milliseconds; undefined to take one. */
  readonly everyMs: number | undefined;
}

/** What a rotation came to. */
export interface Rotated {
  /** The last backup. */
  readonly file: string;
  /** RFC 3339 in UTC. */
  readonly takenAt: string;
  /** Whether it was taken now. */
  readonly isNew: boolean;
  readonly removed: readonly string[];
  /** Files with such names that are no whole backups: left for a person to look at. */
  readonly broken: readonly string[];
}

interface Kept {
  readonly name: string;
  readonly sequence: number;
}

/** Numbered, so that a clock which was set wrong does not change which is the oldest; in digits that a next one has, too. */
const namePattern = /^artseal-(\d{6,12})-\d{8}T\d{6}Z\.tar$/;
const sequenceDigits = 6;

/** The last backup that proved damaged. It is not counted, and the next damaged one replaces it. */
const damagedName = 'artseal.tar.damaged';
/** Faults of a damaged backup that are named; `artseal backup verify` names all. */
const namedMax = 3;

/**
 * Takes a backup into a folder unless the last one is young enough, verifies it as `artseal backup verify` does, and only
 * then removes the oldest of those that it took before, if they are whole and more than `keep`: never the last one, and
 * nothing else. What an earlier run did not finish is removed as well. The result goes into the data folder. Throws
 * BackupError if the new backup is damaged, and what `takeBackup` and `verifyBackup` throw; then no backup was removed.
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
      // The disk of the data folder is full or broken: what failed first is thrown, and the age of the last one tells.
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
  const name = nameOf(sequenceBehind(folder), order.nowMs);
  const takenAt = await takeVerified(order, folder, name);
  const removed = [...whole.map((kept) => kept.name), name].slice(0, -keep);
  for (const old of removed) rmSync(join(folder, old));
  return { file: join(folder, name), takenAt, isNew: true, removed, broken };
}

/** Takes a backup that has its name once it is verified; when it was taken. A damaged one is kept aside. */
async function takeVerified(
  order: Omit<BackupOrder, 'target'>,
  folder: string,
  name: string,
): Promise<string> {
  // Both are what a next run removes if this one is killed.
  const partial = `${join(folder, name)}${partialMark}`;
  const target = `${partial}unverified`;
  try {
    const { takenAt } = await takeBackup({ ...order, target });
    const { faults } = await verifyBackup(target, order.progress, partial);
    renameSync(target, join(folder, faults.length === 0 ? name : damagedName));
    syncFolder(folder);
    if (faults.length > 0) throw damaged(join(folder, damagedName), faults);
    return takenAt;
  } finally {
    rmSync(target, { force: true });
  }
}

function damaged(file: string, faults: readonly string[]): BackupError {
  const named = faults.slice(0, namedMax).join('; ');
  const more = faults.length > namedMax ? ` (${faults.length} faults)` : '';
  return new BackupError(
    `the new backup is damaged, so no earlier one was removed: ${named}${more}. It is kept as ${file}: ` +
      'see docs/operate/incidents/record-changed.md.',
  );
}

/** A time ahead of the clock tells nothing about age. */
function isYoung(takenAt: string, nowMs: number, everyMs: number): boolean {
  const ageMs = nowMs - Date.parse(takenAt);
  return ageMs >= 0 && ageMs < everyMs;
}

async function inspect(folder: string) {
  const whole: (Kept & { readonly takenAt: string })[] = [];
  const broken: string[] = [];
  for (const kept of keptIn(folder)) {
    try {
      const { manifest } = await openBackup(join(folder, kept.name));
      whole.push({ ...kept, takenAt: manifest.takenAt });
    } catch {
      broken.push(kept.name);
    }
  }
  return { whole, broken };
}

/** The files of a folder that have such names, the oldest first. */
function keptIn(folder: string): readonly Kept[] {
  return readdirSync(folder)
    .flatMap((name) => {
      const [, digits] = namePattern.exec(name) ?? [];
      return digits === undefined ? [] : [{ name, sequence: Number(digits) }];
    })
    .sort((one, other) => one.sequence - other.sequence);
}

const sequenceBehind = (folder: string): number => (keptIn(folder).at(-1)?.sequence ?? 0) + 1;

function nameOf(sequence: number, nowMs: number): string {
  const time = new Date(nowMs).toISOString().replaceAll(/[-:]|\.\d+/g, '');
  return `artseal-${String(sequence).padStart(sequenceDigits, '0')}-${time}.tar`;
}
