import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getAsset } from 'node:sea';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/** What the native addon of better-sqlite3 is called inside the executable. */
export const addonAsset = 'better-sqlite3.node';

/** Under which name the threads of this process find the path of the addon. */
const sharedPath = 'artseal native addon';

/**
 * The native addon of better-sqlite3, from inside the executable: the bundler puts this function in the place of the
 * one of that name in better-sqlite3, which looks for a file. Throws if it cannot be loaded, and says what to do.
 */
export function getBinding(): unknown {
  const module = { exports: {} };
  const path = shareNativeAddon();
  orSayWhatToDo(() => process.dlopen(module, path));
  return module.exports;
}

/**
 * Has the addon where all threads of this process find it that start from now on; its path. They have to load the same
 * file, since two copies of SQLite in a process drop each other's locks. Throws as getBinding does.
 */
export function shareNativeAddon(): string {
  const shared = getEnvironmentData(sharedPath);
  if (typeof shared === 'string') return shared;
  const path = orSayWhatToDo(() => writePrivately(Buffer.from(getAsset(addonAsset))));
  setEnvironmentData(sharedPath, path);
  return path;
}

function orSayWhatToDo<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `SQLite cannot be loaded from ${tmpdir()}: ${reason}; set TMPDIR to a folder that this user can write, on a ` +
        'file system that is not mounted noexec.',
    );
  }
}

/**
 * Writes a file that no other user can change, and that does not outlive this process; its path. On Linux it has no name
 * from before the first byte of it is written: it is reached through the descriptor alone, which stays open.
 */
export function writePrivately(content: Uint8Array, platform: NodeJS.Platform = process.platform): string {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-'));
  const file = join(folder, addonAsset);
  const descriptor = openSync(file, 'wx+', 0o600);
  const remove = () => rmSync(folder, { recursive: true, force: true });
  if (platform === 'linux') remove();
  // Windows removes no file that is loaded: there it stays.
  else if (platform !== 'win32') process.once('exit', remove);
  writeFileSync(descriptor, content);
  return platform === 'linux' ? `/proc/self/fd/${descriptor}` : file;
}
