import { readlinkSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Other users of this machine may change trusted files; the message says what to do about each. */
export class FilesExposed extends Error {
  override name = 'FilesExposed';
}

const writableByGroupOrOthers = 0o022;
const readableByAll = 0o004;
const root = 0;
/** The longest chain of links; that of Linux. */
const linksMax = 40;

/**
 * Rejects files and folders that users other than `user` and root may change, by mode and owner. Follows links, and checks the
 * folder of each target, but no other folders above. Missing files are no fault. A folder with the sticky bit is rejected, since
 * others may add files to it. Without users, as on Windows, nothing is rejected. Throws FilesExposed.
 */
export function refuseChangeableByOthers(paths: readonly string[], user = process.geteuid?.()): void {
  const faults = changeableByOthers(paths, user);
  if (faults.length > 0) throw new FilesExposed(`${faults.join('; ')}.`);
}

/** The faults of these files and folders, each a sentence without full stop that says what to do. */
export function changeableByOthers(paths: readonly string[], user = process.geteuid?.()): readonly string[] {
  if (user === undefined) return [];
  return existing([...new Set(paths.flatMap(withTargetFolders))]).flatMap(({ path, uid, mode }) => {
    if (uid !== user && uid !== root)
      return [
        `${path} belongs to the user with id ${uid}, who may change it: run artseal as that user, or chown ${user} '${path}'`,
      ];
    if ((mode & writableByGroupOrOthers) !== 0)
      return [
        `${path} (mode ${modeText(mode)}) may be changed by other users of this machine: chmod go-w '${path}'`,
      ];
    return [];
  });
}

/** A path and, for a link, the folders of its targets: a user who may change one can replace the target. */
function withTargetFolders(path: string): string[] {
  const folders: string[] = [];
  let target = targetOf(path);
  while (target !== undefined && folders.length < linksMax) {
    folders.push(dirname(target));
    target = targetOf(target);
  }
  return [path, ...folders];
}

/** The target of a link; undefined if the path is no link, or missing. */
function targetOf(path: string): string | undefined {
  try {
    return resolve(realpathSync(dirname(path)), readlinkSync(path));
  } catch {
    return undefined;
  }
}

/** The files and folders that every user of this machine may read, with their modes as chmod takes them. */
export function readableByOthers(paths: readonly string[]): { path: string; mode: string }[] {
  if (process.geteuid === undefined) return [];
  return existing(paths)
    .filter(({ mode }) => (mode & readableByAll) !== 0)
    .map(({ path, mode }) => ({ path, mode: modeText(mode) }));
}

function existing(paths: readonly string[]): (Pick<Stats, 'uid' | 'mode'> & { path: string })[] {
  return paths.flatMap((path) => {
    const stats = statSync(path, { throwIfNoEntry: false });
    return stats === undefined ? [] : [{ path, uid: stats.uid, mode: stats.mode }];
  });
}

const modeText = (mode: number): string => (mode & 0o7777).toString(8).padStart(4, '0');
