import { mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getAsset } from 'node:sea';
import { getEnvironmentData, setEnvironmentData } from 'node:worker_threads';

/** The asset of the executable that holds the native addon of better-sqlite3. */
export const addonAsset = 'better-sqlite3.node';

/** The key under which the threads of this process share the path of the addon. */
const sharedPath = 'artseal native addon';

/**
 * Loads the native addon of better-sqlite3 from the executable. The bundler replaces the function of this name in
 * better-sqlite3 with this one. Throws an Error that says what to do.
 */
export function getBinding(): unknown {
  const module = { exports: {} };
  const path = shareNativeAddon();
  withAdvice(() => process.dlopen(module, path));
  return module.exports;
}

/**
 * Writes the addon for this thread and all threads started later, and returns its path. All threads must load the same
 * file: two copies of SQLite in a process drop each other's locks. Throws an Error that says what to do.
 */
export function shareNativeAddon(): string {
  const shared = getEnvironmentData(sharedPath);
  if (typeof shared === 'string') return shared;
  const path = withAdvice(() => writePrivately(Buffer.from(getAsset(addonAsset))));
  setEnvironmentData(sharedPath, path);
  return path;
}

function withAdvice<T>(load: () => T): T {
  try {
    return load();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `cannot load SQLite from ${tmpdir()}: ${reason}; set TMPDIR to a folder that this user can write, on a file ` +
        'system that is not mounted noexec.',
    );
  }
}

/**
 * Writes a file that only this process can reach, and returns its path. The file is removed before its first byte is
 * written, so no other user can replace it. The path leads through the open descriptor.
 */
export function writePrivately(content: Uint8Array): string {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-'));
  const descriptor = openSync(join(folder, addonAsset), 'wx+', 0o600);
  rmSync(folder, { recursive: true, force: true });
  writeFileSync(descriptor, content);
  return `/proc/self/fd/${descriptor}`;
}
