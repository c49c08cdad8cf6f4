import { globSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** The variable that names the folder of the claims of this run. */
export const claimsVariable = 'ARTSEAL_TEST_CLAIMS';

const testFolder = join(import.meta.dirname, '..');
const done = 'done';

/** The test files of `npm test`, by their paths in `test`. */
function testFiles(): string[] {
  return globSync('**/*.test.ts', {
    cwd: testFolder,
    exclude: ['clients/**/node_modules', '**/*.slow.test.ts'],
  });
}

/**
 * Runs the test files that no other process of this run has claimed, one after the other; each is claimed when it is its
 * turn. `claims` is the folder of the claims.
 */
export async function runClaimed(claims: string, run: (path: string) => Promise<void>): Promise<void> {
  for (const file of testFiles().sort((one, other) => weightOf(other) - weightOf(one))) {
    const path = claimOf(claims, file);
    if (!claim(path)) continue;
    await run(join(testFolder, file));
    writeFileSync(path, done);
  }
}

/** Returns the test files that did not run to their end: a process that ends early takes its remaining files with it. */
export function unfinishedFiles(claims: string): string[] {
  return testFiles().filter((file) => {
    try {
      return readFileSync(claimOf(claims, file), 'utf8') !== done;
    } catch {
      return true;
    }
  });
}

const claimOf = (claims: string, file: string) => join(claims, encodeURIComponent(file));

/** Files of processes take longest, then the largest ones: if they begin first, the processes end at about the same time. */
function weightOf(file: string): number {
  const { size } = statSync(join(testFolder, file));
  return file.startsWith('process/') ? size + 1_000_000 : size;
}

function claim(path: string): boolean {
  try {
    writeFileSync(path, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
