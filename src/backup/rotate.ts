import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openBackup } from './open.ts';
import { type BackupOrder, partialMark, takeBackup } from './take.ts';

/** A backup is to be taken into a folder that keeps the last ones. */
export interface RotationOrder extends Omit<BackupOrder, 'target'> {
  /** A folder that exists. */
  readonly folder: string;
  /** How many are kept, at least 1. */
  readonly keep: number;
  /** None is taken as long as the last one is younger, in milliseconds; undefined to take one. */
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

/**
 * Takes a backup into a folder unless the last one is young enough, and then removes the oldest of those that it took
 * before, if they are whole and more than `keep`: never the last one, and nothing else. What an earlier run did not
 * finish is removed as well. Throws what `takeBackup` throws, and then nothing was removed.
 */
export async function rotateBackups({ folder, keep, everyMs, ...order }: RotationOrder): Promise<Rotated> {
  for (const name of readdirSync(folder)) {
    const [backup = '', ...rest] = name.split(partialMark);
    if (namePattern.test(backup) && rest.length > 0) rmSync(join(folder, name), { recursive: true });
  }
  const { whole, broken } = await inspect(folder);
  const last = whole.at(-1);
  if (last !== undefined && everyMs !== undefined && isYoung(last.takenAt, order.nowMs, everyMs)) {
    return { file: join(folder, last.name), takenAt: last.takenAt, isNew: false, removed: [], broken };
  }
  const name = nameOf(sequenceBehind(folder), order.nowMs);
  const { takenAt } = await takeBackup({ ...order, target: join(folder, name) });
  const removed = [...whole.map((kept) => kept.name), name].slice(0, -keep);
  for (const old of removed) rmSync(join(folder, old));
  return { file: join(folder, name), takenAt, isNew: true, removed, broken };
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
