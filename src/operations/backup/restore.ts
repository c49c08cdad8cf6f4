import { mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { Environment } from '../../domain/caller.ts';
import { syncFolder } from '../../lib/replace-file.ts';
import { logCheckpoint } from '../../store/engine/schema.ts';
import { openDatabase } from '../../store/sqlite/database.ts';
import { existingFolder, freeBytes, megabytes, syncFile } from '../../store/sqlite/durable-files.ts';
import { databaseName, folderLockName, unfinishedRestoreName } from '../../store/sqlite/location.ts';
import { recordRestorationIn } from '../../store/sqlite/restoration.ts';
import { BackupError, type Manifest, type Progress } from './manifest.ts';
import { faultsOf, openBackup } from './verify.ts';
import { type RestoredBackup, yearsSince } from './years-since.ts';

/** Which backup is restored, where, and which numbers are left out. */
export interface RestoreOrder extends Omit<RestoredBackup, 'takenAtMs' | 'filingYears'> {
  readonly file: string;
  /** A folder that is empty or not there. */
  readonly into: string;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly progress: Progress;
}

/** The root of a file system has this folder. */
const systemFolders = ['lost+found'];
/** The upgrade to the current schema writes as much again. */
const roomFactor = 2;

/**
 * Restores a backup: verifies it, upgrades its database to the current schema, and leaves out all numbers that may have
 * been given out since it was taken. The database is moved to its place last, so that an unfinished folder is never
 * served. Throws BackupError and DatabaseError.
 */
export async function restoreBackup(order: RestoreOrder) {
  const { file, progress } = order;
  const into = resolve(order.into);
  refuseUsed(into);
  const backup = await openBackup(file);
  const { manifest } = backup;
  const years = yearsSince({
    ...order,
    takenAtMs: Date.parse(manifest.takenAt),
    filingYears: Object.keys(manifest.database.lastFilings).map(Number),
  });
  refuseWithoutRoom(manifest, into);
  mkdirSync(into, { recursive: true, mode: 0o700 });
  const work = join(into, unfinishedRestoreName);
  mkdirSync(work, { mode: 0o700 });
  try {
    const faults = await faultsOf(file, backup, work, progress);
    if (faults.length > 0) throw new BackupError(`${file} is not sound: ${faults.join('; ')}.`);
    progress('restoring', 0, 0);
    const noted = await note(work, manifest, years, order);
    for (const name of readdirSync(work).sort(databaseLast)) {
      if (name === folderLockName) continue;
      syncFile(join(work, name));
      // If the database is on disk, so are the other files.
      if (name === databaseName) syncFolder(into);
      renameSync(join(work, name), join(into, name));
    }
    syncFolder(into);
    syncFolder(dirname(into));
    return { manifest, ...noted };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function refuseUsed(into: string): void {
  const stats = statSync(into, { throwIfNoEntry: false });
  if (stats === undefined) return;
  const isEmpty = stats.isDirectory() && readdirSync(into).every((name) => systemFolders.includes(name));
  if (!isEmpty)
    throw new BackupError(`${into} is not an empty folder: name one that is, or that is not there.`);
}

function refuseWithoutRoom({ files }: Manifest, into: string): void {
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0);
  const needed = bytes * roomFactor;
  const free = freeBytes(existingFolder(into));
  if (free < needed)
    throw new BackupError(`${into} needs ${megabytes(needed)} free, and ${megabytes(free)} are: make room.`);
}

async function note(
  work: string,
  { takenAt, database: { environment, currency } }: Manifest,
  years: readonly number[],
  { nowMs, numbersAfter, random }: RestoreOrder,
) {
  const { database, close } = openDatabase(
    { dataDir: work, opening: 'EXISTING', environment: environment as Environment, currency },
    { keepsCopy: false },
  );
  try {
    const gaps = await recordRestorationIn(database, {
      takenAtS: Math.floor(Date.parse(takenAt) / 1000),
      restoredAtS: Math.floor(nowMs / 1000),
      years,
      numbersAfter,
      random,
    });
    // Whether checkpoints of its evidence log were published. No backup has the newest one.
    const isPublished = database.select().from(logCheckpoint).limit(1).get() !== undefined;
    return { gaps, isPublished };
  } finally {
    // The last connection writes the log into the database.
    close();
  }
}

const databaseLast = (one: string, other: string): number =>
  Number(one === databaseName) - Number(other === databaseName);
