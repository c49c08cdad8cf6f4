import { closeSync, existsSync, fsyncSync, mkdirSync, openSync, statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/** The mode of files that no other user may read or write. */
export const privateMode = 0o600;

/**
 * Creates a file that no other user may read, if there is none. It never opens a file that exists: closing it would drop the
 * locks that this process has on it.
 */
export function makePrivateFile(file: string): void {
  if (!existsSync(file)) closeSync(openSync(file, 'a', privateMode));
}

/**
 * Creates a folder and its parents, which no other user may read. `mkdirSync` with `recursive` never returns if a parent can
 * neither be found nor created.
 */
export function createFolder(folder: string): void {
  if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(folder) !== folder) createFolder(dirname(folder));
  try {
    mkdirSync(folder, { mode: 0o700 });
  } catch (error) {
    // Another process that starts at the same moment may have created it.
    if (!statSync(folder, { throwIfNoEntry: false })?.isDirectory()) throw error;
  }
}

/** Flushes a file to disk. Not for an open database. */
export function syncFile(file: string): void {
  const opened = openSync(file, 'r+');
  try {
    fsyncSync(opened);
  } finally {
    closeSync(opened);
  }
}

/** Bytes that this user may still write to the disk of a folder. */
export function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}

/** The size of a database with its write-ahead log, in bytes; 0 if there is none. */
export function databaseBytes(database: string): number {
  const sizeOf = (file: string) => statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  return sizeOf(database) + sizeOf(`${database}-wal`);
}

/** The nearest folder at or above a path that exists. */
export function existingFolder(path: string): string {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() || dirname(path) === path
    ? path
    : existingFolder(dirname(path));
}

/** Bytes as text: `12.3 MB`. */
export function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(1)} MB`;
}
