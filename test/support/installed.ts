import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where Debian keeps servers; not on everybody's PATH. */
const serverFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Where a program is; undefined where it is not installed. */
export function installed(program: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...serverFolders];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

/**
 * For a test's `skip`: false if all of these programs are installed, else which are missing. Throws instead if
 * ARTSEAL_TEST_REQUIRE_ALL is set, as CI does.
 */
export function skipUnlessInstalled(...programs: readonly string[]): string | false {
  const missing = programs.filter((program) => installed(program) === undefined);
  if (missing.length === 0) return false;
  const reason = `not installed: ${missing.join(', ')} (.ci/run has the package of each)`;
  if (process.env.ARTSEAL_TEST_REQUIRE_ALL) throw new Error(reason);
  return reason;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
