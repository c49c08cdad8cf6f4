import { accessSync, constants } from 'node:fs';
import { dirname } from 'node:path';

/** What an error of the operating system means for a path, and what to do. */
const sentences: Readonly<Record<string, (path: string) => string>> = {
  ENOENT: (path) => `${path} does not exist: check the path`,
  ENOTDIR: (path) => `${path} does not exist: a part of its path is a file, not a folder`,
  EEXIST: (path) => `${path} exists already: name another one, or remove it`,
  EISDIR: (path) => `${path} is a folder, not a file`,
  EACCES: notAllowed,
  EPERM: notAllowed,
  EROFS: (path) =>
    `${path} is on a disk that is mounted read-only: mount it for writing, or name another place`,
  ENOSPC: noRoom,
  EDQUOT: noRoom,
};

function notAllowed(path: string): string {
  return `this user may not use ${path}: change its owner or mode, or run artseal as another user`;
}

function noRoom(path: string): string {
  return `${path} cannot be written, since the disk is full: make room`;
}

/**
 * Returns a sentence, without full stop, for an error of the operating system or SQLite about a file: the path and what to do.
 * Returns undefined for any other error. `path` is the file if the error names none.
 */
export function fileErrorText(error: unknown, path?: string): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = '', path: named = path, syscall } = error as NodeJS.ErrnoException;
  if (named === undefined) return undefined;
  if (/^SQLITE_(CANTOPEN|READONLY|PERM)/.test(code)) return unusableText(named);
  if (code === 'SQLITE_FULL') return noRoom(named);
  // The name of a folder that was to be made ends with random letters.
  return sentences[code]?.(syscall === 'mkdtemp' ? dirname(named) : named);
}

/** Returns the same sentence, or the message of any other error. */
export function errorText(error: unknown): string {
  return fileErrorText(error) ?? (error instanceof Error ? error.message : String(error));
}

/** Why SQLite cannot open or write a database file; its own message says little. */
function unusableText(file: string): string | undefined {
  try {
    accessSync(dirname(file), constants.R_OK | constants.W_OK | constants.X_OK);
    accessSync(file, constants.R_OK | constants.W_OK);
    return undefined;
  } catch (error) {
    return fileErrorText(error);
  }
}
