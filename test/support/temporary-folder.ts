import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';

// Some systems let the group of an ordinary user change new files, which the service refuses.
process.umask(0o022);

const leftBehind: string[] = [];
process.once('exit', () => {
  for (const folder of leftBehind) rmSync(folder, { recursive: true, force: true });
});

/**
 * A folder of the test's own. It is removed when the process of the test file ends: a store that the test closes after
 * it writes what is left to its database, which must still be there.
 */
export function temporaryFolder(test: Pick<TestContext, 'after'>): string {
  const folder = mkdtempSync(join(tmpdir(), 'artseal-test-'));
  test.after(() => leftBehind.push(folder));
  return folder;
}
