import { globSync } from 'node:fs';
import { join } from 'node:path';
import { before } from 'node:test';

/** The files that have a process each: package.json's scripts test and test:slow name them. */
const apart = ['{process,deploy,clients}/**', '**/*.slow.test.ts'];

const testFolder = join(import.meta.dirname, '..');
const parts = globSync('part-*.ts', { cwd: import.meta.dirname }).length;

/**
 * Runs one part of the test files in this process, so that the modules of the service are loaded once for many files.
 * Every file is in exactly one part, but for those that have a process each. All files of the part are loaded before the
 * first of its tests begins. `part` counts from 1.
 */
export async function runPart(part: number): Promise<void> {
  const { promise: loaded, resolve } = Promise.withResolvers<void>();
  before(() => loaded);
  const files = globSync('**/*.test.ts', { cwd: testFolder, exclude: apart }).sort();
  for (const [place, file] of files.entries()) {
    if (place % parts === part - 1) await import(join(testFolder, file));
  }
  resolve();
}
