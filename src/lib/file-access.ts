import { readlinkSync, realpathSync, type Stats, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';

/** Other users of this machine may change what the service trusts; the message says what to do about each file. */
export class FilesExposed extends Error {
  override name = 'FilesExposed';
}

const writableByGroupOrOthers = 0o022;
const readableByAll = 0o004;
const root = 0;
/** How many links are followed from one to the next; Linux follows as many. */
const linksMax = 40;

/**
 * Refuses files and folders that another user than `user` and root may change, by their modes and owners. Links are
 * followed, and the folder of each target is looked at too; what is not there is no fault; other folders above are not looked at. A folder with the sticky bit is refused
 * as well, since others may add files to it. Without users, as on Windows, nothing is refused. Throws FilesExposed.
 */
export function refuseChangeableByOthers(paths: readonly string[], user = process.geteuid?.()): void {
  const faults = changeableByOthers(paths, user);
  if (faults.length > 0) throw new FilesExposed(`${faults.join('; ')}.`);
}

/** What of these files and folders is refused for it, each in a sentence without its end that says what to do. */
export function changeableByOthers(paths: readonly string[], user = process.geteuid?.()): readonly string[] {
  if (user === undefined) return [];
  return existing([...new Set(paths.flatMap(withTargetFolders))]).flatMap(({ path, uid, mode }) => {
    if (uid !== user && uid !== root)
      return [`${path} belongs to the user with id ${uid}, who may change it: chown ${user} '${path}'`];
    if ((mode & writableByGroupOrOthers) !== 0)
      return [
        `${path} (mode ${modeText(mode)}) may be changed by other users of this machine: chmod go-w '${path}'`,
      ];
    return [];
  });
}

/** A path, and where it is a link, the folders of its targets: who may change one can put another file in the place of the target. */
function withTargetFolders(path: string): string[] {
  const folders: string[] = [];
  let target = targetOf(path);
  while (target !== undefined && folders.length < linksMax) {
    folders.push(dirname(target));
    target = targetOf(target);
  }
  return [path, ...folders];
}

/** Where a link leads; undefined if it is none, or is not there. */
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
