import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** Where Debian keeps servers; not on everybody's PATH. */
const serverFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin'];

/** Where a program is; undefined where it is not installed. */
export function installed(program: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), ...serverFolders];
  return folders.map((folder) => join(folder, program)).find(isExecutable);
}

/** Debian packages of programs that bear another name. */
const packages: Readonly<Record<string, string>> = {
  promtool: 'prometheus',
  php: 'php-cli',
  ip: 'iproute2',
  script: 'bsdutils',
  man: 'man-db',
};

/**
 * For a test's `skip`: false where all of these programs are installed, else which are missing, and the Debian packages to
 * install for them. Throws instead where ARTSEAL_TEST_REQUIRE_ALL is set, as CI does: there it is no reason to skip anything.
 */
export function skipUnlessInstalled(...programs: readonly string[]): string | false {
  const missing = programs.filter((program) => installed(program) === undefined);
  if (missing.length === 0) return false;
  const reason = `not installed: ${missing.join(', ')} (apt-get install ${missing.map((program) => packages[program] ?? program).join(' ')})`;
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
