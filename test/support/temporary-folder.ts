import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

// On some systems the group may change new files, which the service rejects.
process.umask(0o022);

const folders: string[] = [];
process.once('exit', () => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

/**
 * Returns a new folder. It is removed when the process ends, not after the test: a store that is closed after the test still
 * writes to its database.
 */
export function temporaryFolder(test: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-test-'));
  test.after(() => folders.push(folder));
  return folder;
}
