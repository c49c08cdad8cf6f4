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
  // The largest files first, so that the processes end at about the same time.
  const bytes = new Map(files.map((file) => [file, statSync(join(testFolder, file)).size]));
  for (const file of files.sort((one, other) => (bytes.get(other) ?? 0) - (bytes.get(one) ?? 0)))
    if (claim(join(claims, encodeURIComponent(file)))) yield join(testFolder, file);
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
