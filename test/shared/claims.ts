import { closeSync, globSync, mkdtempSync, openSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** The variable that names the folder of the claims of this run. */
export const claimsVariable = 'ARTSEAL_TEST_CLAIMS';

const testFolder = join(import.meta.dirname, '..');

/** The paths of the test files that no other process of this run has claimed; each is claimed when it is its turn. */
export function* claimedFiles(): Iterable<string> {
  const claims = process.env[claimsVariable] ?? mkdtempSync(join(tmpdir(), 'artseal-test-claims-'));
  const files = globSync('**/*.test.ts', {
    cwd: testFolder,
    exclude: ['clients/**/node_modules', '**/*.slow.test.ts'],
  });
  for (const file of files.sort((one, other) => weightOf(other) - weightOf(one)))
    if (claim(join(claims, encodeURIComponent(file)))) yield join(testFolder, file);
}

/** Files of processes take longest, then the largest ones: if they begin first, the processes end at about the same time. */
function weightOf(file: string): number {
  const { size } = statSync(join(testFolder, file));
  return file.startsWith('process/') ? size + 1_000_000 : size;
}

function claim(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx'));
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}
