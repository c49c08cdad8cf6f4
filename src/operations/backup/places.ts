import { lstat, realpath } from 'node:fs/promises';
import { dirname, isAbsolute, join, resolve, sep } from 'node:path';
import { fieldError } from '../../domain/violation.ts';

/** Names that a token may use. They lead out of no folder. */
const namePattern = /^[A-Za-z0-9_][A-Za-z0-9._-]{0,199}$/;

/**
 * Finds the paths that callers name for backups; `isLocal` for a user of the machine, who may name any absolute path. A token may name only what is in `backupDir`, so that a stolen one writes
 * nowhere else. `serviceFolders` are the only folders that the service can write under systemd; undefined without systemd.
 */
export function createBackupPlaces(
  backupDir: string | undefined,
  serviceFolders: readonly string[] | undefined,
) {
  function ofUser(field: string, path: string): string {
    if (!isAbsolute(path)) throw wrong(field, 'must be an absolute path');
    return resolve(path);
  }

  /** Under systemd other folders are read-only, and /tmp is a private one that vanishes with the service. */
  async function writable(field: string, path: string, folder: string): Promise<string> {
    if (serviceFolders === undefined) return path;
    const folders = [...serviceFolders, ...(backupDir === undefined ? [] : [backupDir])];
    const [real, ...allowed] = await Promise.all([folder, ...folders].map(realOf));
    if (!allowed.some((root) => real === root || real?.startsWith(root + sep)))
      throw wrong(field, `must be in one of ${folders.join(', ')}: the service can write nowhere else`);
    return path;
  }

  function ofToken(field: string, name: string): string {
    if (backupDir === undefined)
      throw wrong(field, 'can be used by a token only if the server has a folder ARTSEAL_BACKUP_DIR: set it');
    if (!namePattern.test(name))
      throw wrong(
        field,
        'must be a name in the folder of ARTSEAL_BACKUP_DIR, 1 to 200 characters of A-Z, a-z, 0-9, ".", "_" and "-", ' +
          'and must not begin with "." or "-": a token can name no other path',
      );
    return join(backupDir, name);
  }

  return {
    /** The path of a new file. Like the others it throws VALIDATION_FAILED. */
    newFile: async (file: string, isLocal: boolean): Promise<string> => {
      if (isLocal) {
        const path = ofUser('file', file);
        return writable('file', path, dirname(path));
      }
      // A file with the name of a rotated backup would change which ones rotations remove.
      if (file.startsWith('artseal'))
        throw wrong('file', 'must not begin with artseal: rotations use such names');
      return ofToken('file', file);
    },
    /** The path of a file to read. */
    existingFile: async (file: string, isLocal: boolean): Promise<string> =>
      isLocal ? ofUser('file', file) : notLinked('file', ofToken('file', file)),
    /** The path of a folder to rotate in. */
    folder: async (into: string, isLocal: boolean): Promise<string> => {
      if (isLocal) {
        const path = ofUser('into', into);
        return writable('into', path, path);
      }
      return into === '' && backupDir !== undefined ? backupDir : notLinked('into', ofToken('into', into));
    },
  };
}

const wrong = (field: string, rule: string) => fieldError('VALIDATION_FAILED', field, rule);

/** The path without symbolic links, or as it is if it does not exist. */
const realOf = (path: string): Promise<string> => realpath(path).catch(() => resolve(path));

/** Throws VALIDATION_FAILED for a symbolic link, which could lead out of the folder. */
async function notLinked(field: string, path: string): Promise<string> {
  const isLink = await lstat(path).then(
    (stats) => stats.isSymbolicLink(),
    () => false,
  );
  if (isLink)
    throw wrong(field, 'must not be a symbolic link: a token can name only what is in ARTSEAL_BACKUP_DIR');
  return path;
}
